//go:build bars

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const paceModel = `
import os, time
takes = float(os.environ["TAKES"])
def predict(inputs):
    for _ in inputs:
        time.sleep(takes)
    return [1.0] * len(inputs)
`

// pacedModel takes its time for each input; a stream and another app ask it.
type pacedModel struct{ takes, objective time.Duration }

func (m pacedModel) name() string { return m.takes.String() }

// TestStreamsKeepReplicasBusy has streams, with their defaults, ask models that take 1, 10 and 100 ms,
// alone and beside an app that takes half of what the replicas can do. The replicas are to be busy, and
// nobody is to get a default. It measures, so it is not parallel to others.
func TestStreamsKeepReplicasBusy(t *testing.T) {
	b := startRedis(t)
	models := []pacedModel{{time.Millisecond, 100 * time.Millisecond}, {10 * time.Millisecond, 100 * time.Millisecond}, {100 * time.Millisecond, time.Second}}
	for _, replicas := range []int{1, 4} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("replicas %d, shared %v", replicas, shared), func(t *testing.T) {
				prefix := fmt.Sprintf("%d.%v.", replicas, shared)
				dir := t.TempDir()
				in := start(t, dir, pacedConfig(t, dir, b.addrs[0], prefix, replicas, models)).ready()
				in.until("all replicas", func() bool { return in.total("topsail_sidecar_containers_ready{") == float64(replicas*len(models)) })
				for _, m := range models {
					t.Run(m.name(), func(t *testing.T) {
						t.Parallel()
						in.keepsBusy(t, b, m, prefix, replicas, shared)
					})
				}
			})
		}
	}
}

func pacedConfig(t *testing.T, dir, redis, prefix string, replicas int, models []pacedModel) string {
	file := filepath.Join(dir, "paced.py")
	require.NoError(t, os.WriteFile(file, []byte(paceModel), 0o600))
	var text strings.Builder
	for _, m := range models {
		name := m.name()
		fmt.Fprintf(&text, "[[model]]\nname = %q\nversion = '1'\ninput_type = 'doubles'\nreplicas = %d\ncommand = ['python3', '-m', 'topsail', %q]\nenv = { TAKES = '%v' }\n", name, replicas, file+":predict", m.takes.Seconds())
		for _, app := range []string{"stream-", "other-"} {
			fmt.Fprintf(&text, "[[app]]\nname = %q\ninput_type = 'doubles'\nlatency_slo_micros = %d\nmodels = [%q]\ncache.off = %v\n", app+name, m.objective.Microseconds(), name, app == "other-")
		}
		fmt.Fprintf(&text, "[[stream]]\nname = %q\napp = %q\nbroker = 'redis'\naddrs = [%q]\ninput = [%q]\noutput = %q\ndead_letter = %q\n",
			name, "stream-"+name, redis, prefix+name+".in", prefix+name+".out", prefix+name+".dead")
	}
	return text.String()
}

// keepsBusy sends a stream as many records as take some seconds, and looks at the replicas meanwhile.
func (in *instance) keepsBusy(t *testing.T, b *streamBroker, m pacedModel, prefix string, replicas int, shared bool) {
	left := float64(replicas) / m.takes.Seconds() // inputs a second that the stream can have
	var neighbours sync.WaitGroup
	loading, stop := context.WithCancel(t.Context())
	defer neighbours.Wait()
	defer stop()
	if shared {
		left /= 2
		neighbours.Go(func() {
			report, err := load.Run(loading, load.Config{
				URL: "http://" + in.gateway + "/other-" + m.name() + "/predict", Body: load.Cycle([]byte(`{"input": [1]}`)), Rate: left, Uniform: true, Duration: patience,
			})
			if defaults := report.Answered - report.Good; defaults > report.Answered/50 || loading.Err() == nil {
				t.Errorf("%s: the other app gets %d defaults of %d answers, error %v: %v", m.name(), defaults, report.Answered, err, report.Defaults)
			}
		})
	}
	records := int(5 * left)
	messages := make([]serving.StreamMessage, records)
	for i := range messages {
		messages[i] = serving.StreamMessage{Stream: prefix + m.name() + ".in", Value: fmt.Appendf(nil, `{"uuid": "%d", "input": [%d]}`, i, i)}
	}
	if err := b.Write(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
	answered := func() float64 {
		return in.total(fmt.Sprintf("topsail_stream_predict_seconds_count{stream=%q", m.name()))
	}
	busy := func() float64 { return in.total(fmt.Sprintf("topsail_sidecar_batch_seconds_sum{model=%q", m.name())) }
	// To look takes time of the processors, which the replicas need.
	until := func(what string, good func() bool) {
		in.until(what, func() bool { time.Sleep(100 * time.Millisecond); return good() })
	}
	until("the first answers", func() bool { return answered() >= float64(records)/10 })
	began, first := time.Now(), busy()
	until("nearly all answers", func() bool { return answered() >= 0.95*float64(records) })
	took := time.Since(began).Seconds()
	share := (busy() - first) / took / float64(replicas)
	t.Logf("%s, %d replicas, shared %v: busy %.2f, %.0f records a second", m.name(), replicas, shared, share, 0.85*float64(records)/took)
	least := 0.85
	if m.takes == time.Millisecond && replicas > 1 && !shared {
		least = 0.9
	}
	if share < least {
		t.Errorf("%s, %d replicas, shared %v: the replicas are busy for %.2f of the time", m.name(), replicas, shared, share)
	}
	until("all results", func() bool {
		return in.total(fmt.Sprintf(`topsail_stream_records_total{result="predicted",stream=%q`, m.name())) == float64(records)
	})
}
