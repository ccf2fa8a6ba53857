package main

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
)

func TestFloodFigures(t *testing.T) {
	f := flood{capacity: 1000, settled: 10 << 20, end: 12 << 20, report: load.Report{
		Sent: 2990, Unsent: 1, Statuses: map[int]int{200: 2989}, Goodput: 900, Elapsed: time.Second,
		Latency: load.Quantiles{P999: 54 * time.Millisecond},
	}}
	verdicts := map[string]string{}
	for _, f := range floodFigures("m", []flood{f}) {
		verdicts[f.What] = f.Value() + " " + f.Verdict()
	}
	for what, want := range map[string]string{
		"m: queries sent / capacity":       "2.99× ",
		"m: queries not answered":          "2 MISS",
		"m: predictions / capacity":        "0.90× pass",
		"m: p99.9":                         "54.00 ms pass",
		"m: memory at the end / early":     "1.20× MISS",
		"m: memory of gateway and sidecar": "12.0 MiB ",
	} {
		if verdicts[what] != want {
			t.Errorf("%s: got %q, want %q", what, verdicts[what], want)
		}
	}
}
