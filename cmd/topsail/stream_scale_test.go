//go:build bars

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// TestStreamsScaleByLag has a record wake a model of 10 ms from zero, a backlog scale it to the most
// replicas that may be until it is worked off, and takes the replicas back after it.
func TestStreamsScaleByLag(t *testing.T) {
	const most, records = 4, 5000
	b := startRedis(t)
	m := pacedModel{10 * time.Millisecond, 100 * time.Millisecond}
	dir := t.TempDir()
	config := strings.Replace(pacedConfig(t, dir, b.addrs[0], "", 1, []pacedModel{m}), "replicas = 1\n", fmt.Sprintf("scale = { min = 0, max = %d, idle_micros = 8000000 }\n", most), 1) +
		"catch_up_micros = 10000000\n"
	in := start(t, dir, config).ready()
	o := operate(t, in)
	written := 0
	write := func(n int) {
		messages := make([]serving.StreamMessage, n)
		for i := range messages {
			messages[i] = serving.StreamMessage{Stream: m.name() + ".in", Value: fmt.Appendf(nil, `{"uuid": "%d", "input": [%d]}`, written+i, written+i)}
		}
		written += n
		if err := b.Write(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
	}
	done := func() bool {
		time.Sleep(50 * time.Millisecond) // to look takes time of the processors
		return in.total(fmt.Sprintf(`topsail_stream_records_total{result="predicted",stream=%q`, m.name())) == float64(written)
	}
	ready := func() float64 { return in.total("topsail_sidecar_containers_ready{") }
	in.until("the end of the replica that a new version has", func() bool { time.Sleep(50 * time.Millisecond); return ready() == 0 })
	write(1)
	in.until("the result of the first record", done)
	write(records)
	began := time.Now()
	in.until("all replicas", func() bool { return ready() == most })
	t.Logf("%d replicas after %v", most, time.Since(began).Round(time.Millisecond))
	in.until("all results", done)
	t.Logf("%d records after %v", records, time.Since(began).Round(time.Millisecond))
	in.until("the end of all replicas", func() bool { time.Sleep(50 * time.Millisecond); return ready() == 0 })
	t.Logf("no replica after %v", time.Since(began).Round(time.Millisecond))

	decided := list[struct {
		At           time.Time
		Rule, Reason string
		From, To     int
	}](o, "/decisions?model="+m.name())
	woken := 0
	for woken < len(decided)-1 && decided[woken].Rule != "wake" {
		woken++
	}
	if woken < 2 || decided[woken].Rule != "wake" || decided[0].Rule != "idle" || decided[0].From != most {
		t.Fatalf("the scheduler decided %+v", decided)
	}
	said := false
	for i, d := range decided[:woken] {
		said = said || strings.Contains(d.Reason, fmt.Sprintf("backlog of stream %s: ", m.name()))
		if i > 0 && d.To < d.From {
			t.Errorf("replicas were taken away before the backlog was worked off: %+v", d)
		}
	}
	if !said {
		t.Errorf("no decision names the backlog: %+v", decided)
	}
}
