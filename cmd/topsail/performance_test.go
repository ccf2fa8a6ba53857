//go:build bars

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

const tenMilliseconds = `
import time

def predict(texts):
    time.sleep(0.01)
    return [t.upper() for t in texts]
`

// TestAVersionShowsWhatItDid asks a model that takes 10 ms: a viewer sees who deployed it and
// how fast it is, also after a restart, and that what it becomes under its name has done nothing yet.
func TestAVersionShowsWhatItDid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeModel(t, dir, tenMilliseconds)
	sdk, err := filepath.Abs("../../containers/python/src")
	if err != nil {
		t.Fatal(err)
	}
	in := start(t, dir, "")
	o := operate(t, in)
	vera := o.newKey(dir, "vera", "--role", "viewer")
	const path = "/models/slow/versions/1"
	deploy := func(more ...string) {
		o.do(slices.Concat([]string{"deploy", "slow", "--version", "1", "--input-type", "strings", "--app", "sum", "--slo", "20s", "--dir", dir, "--commit", "c1", "--env", "PYTHONPATH=" + sdk},
			more, []string{"--", "python3", "-m", "topsail", "moody.py:predict", "--input-type", "strings"})...)
	}
	deploy()
	v := get[api.Version](vera, path)
	if d := v.Deployed; d == nil || d.By != "local" || d.Commit != "c1" || !strings.HasPrefix(d.Client, "topsail/") || time.Since(d.At) > time.Minute {
		t.Errorf("it is deployed by %+v", d)
	}
	if v.Performance != nil {
		t.Errorf("before it was asked anything it shows %+v", v.Performance)
	}
	const queries = 40
	var waited []float64 // by each query, in microseconds: the model's time and more, also on a busy machine
	asked := func(in *instance, o *operator) {
		t.Helper()
		in.gateway = strings.TrimPrefix(o.setting("TOPSAIL_URL"), "http://")
		for range queries {
			begun := time.Now()
			if a := in.ask(`{"input": "text", "no_cache": true}`); a.Output != "TEXT" {
				t.Fatalf("got %+v", a)
			}
			waited = append(waited, float64(time.Since(begun).Microseconds()))
		}
	}
	measured := func(o *operator, answers uint64) *api.Performance {
		t.Helper()
		var p *api.Performance
		until(t, "what it did", func() bool {
			p = get[api.Version](o, path).Performance
			return p != nil && p.Answers >= answers
		})
		if p.Answers != answers || p.Batches == 0 || p.Batches > answers || *p.Errors != 0 || p.Since.Before(v.Deployed.At.Add(-time.Second)) {
			t.Errorf("after %d answers it shows %+v", answers, p)
		}
		checkSpeed(t, p, waited)
		return p
	}
	asked(in, o)
	before := measured(vera, queries)
	if shown := vera.do("version", "get", "slow:1"); !strings.Contains(shown, "by local, with topsail/") || !strings.Contains(shown, "p50 ") {
		t.Errorf("it is shown as\n%s", shown)
	}
	in.stop(syscall.SIGTERM)
	in = start(t, dir, "")
	o = operate(t, in)
	vera = o.with("TOPSAIL_API_KEY=" + vera.setting("TOPSAIL_API_KEY"))
	if after := measured(vera, queries); *after.P50 != *before.P50 || !after.Since.Equal(before.Since) {
		t.Errorf("after a restart it shows %+v, and before %+v", after, before)
	}
	o.ready("slow:1", 1)
	asked(in, o)
	measured(vera, 2*queries)

	deploy("--replace", "--env", "A=b")
	if v := get[api.Version](vera, path); v.Performance != nil {
		t.Errorf("replaced it shows %+v", v.Performance)
	}
}

// checkSpeed compares what is shown with what one client saw that asked one query after
// another: each batch takes the model's 10 ms, and no longer than its query.
func checkSpeed(t *testing.T, p *api.Performance, waited []float64) {
	t.Helper()
	const model = 10_000 // µs
	slices.Sort(waited)
	total := 0.0
	for _, w := range waited {
		total += w
	}
	n := float64(len(waited))
	median, most := waited[len(waited)/2], waited[len(waited)-1]
	bucket := 1.3 // how far a quantile of the histogram may be off
	if most > 1e6 {
		bucket = 2.5
	}
	if *p.P50 < model || *p.P50 > bucket*median || *p.P99 < *p.P50 || *p.P99 > bucket*most {
		t.Errorf("p50 %v µs, p99 %v µs, and the client saw %v and at most %v", *p.P50, *p.P99, median, most)
	}
	if least := n / total * 1e6; *p.Throughput < 0.95*least || *p.Throughput > 1e6/model {
		t.Errorf("%v a second, want between the client's %v and 100", *p.Throughput, least)
	}
}
