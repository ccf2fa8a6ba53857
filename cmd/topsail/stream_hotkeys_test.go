//go:build bars

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// TestStreamsSpreadHotKeys has nearly all records with one key, for a model of 10 ms on four replicas.
// With four owners that are named, and with as many as the key's rate asks for, the busiest replica
// does hardly more than the others; with one owner, a replica does nearly all.
func TestStreamsSpreadHotKeys(t *testing.T) {
	b := startRedis(t)
	m := pacedModel{10 * time.Millisecond, 100 * time.Millisecond}
	for name, c := range map[string]struct {
		line string
		most float64 // of the busiest, for the mean
	}{
		"four owners":  {"hot_keys = { pinot = 4 }", 1.2},
		"by its rate":  {"", 1.2},
		"one owner":    {"hot_share = 0", 4},
		"by its share": {"hot_share = 0.25", 1.2},
	} {
		t.Run(name, func(t *testing.T) {
			const replicas = 4
			prefix, dir := name+".", t.TempDir()
			in := start(t, dir, pacedConfig(t, dir, b.addrs[0], prefix, replicas, []pacedModel{m})+"spread = 'key'\n"+c.line+"\n").ready()
			in.until("all replicas", func() bool { return in.total("topsail_sidecar_containers_ready{") == replicas })
			hot := 2400
			if c.most > 2 {
				hot = 600
			}
			messages := make([]serving.StreamMessage, 0, hot+hot/16)
			add := func(key string) {
				i := len(messages)
				messages = append(messages, serving.StreamMessage{Stream: prefix + m.name() + ".in", Key: []byte(key), Value: fmt.Appendf(nil, `{"uuid": "%d", "input": [%d]}`, i, i)})
			}
			for i := range hot {
				add("pinot")
				if i%16 == 0 {
					add(fmt.Sprint("other ", i))
				}
			}
			if err := b.write(t.Context(), messages); err != nil {
				t.Fatal(err)
			}
			answers := func() []float64 {
				all, _ := in.allSeries(`topsail_sidecar_batch_size_sum{`)
				return all
			}
			sum := func() (n float64) {
				for _, x := range answers() {
					n += x
				}
				return n
			}
			until := func(part float64) { // to look takes time of the processors
				in.until("answers", func() bool { time.Sleep(50 * time.Millisecond); return sum() >= part*float64(len(messages)) })
			}
			until(0.4) // by then it is known how many owners the key needs
			began, first := time.Now(), answers()
			until(1)
			took, last := time.Since(began), answers()
			var shares []float64
			for i := range last {
				shares = append(shares, last[i]-first[i])
			}
			mean := 0.6 * float64(len(messages)) / replicas
			busiest := slices.Max(shares) / mean
			t.Logf("%s: %v inputs in %v, the busiest %.2f of the mean", name, shares, took.Round(time.Millisecond), busiest)
			if len(shares) != replicas || busiest > c.most || c.most > 2 && busiest < 3 {
				t.Errorf("%s: the replicas have got %v", name, shares)
			}
		})
	}
}
