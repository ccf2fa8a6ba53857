package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/bench/load"
	"github.com/topsail-serving/topsail/serving"
)

// newTestBench can start processes, and cannot drive them: it has no wrk.
func newTestBench(t *testing.T) *bench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{self: self, dir: t.TempDir()}
	t.Cleanup(b.family.stop)
	return b
}

func TestAStackAnswersAndIsGoneWhenItIsStopped(t *testing.T) {
	b := newTestBench(t)
	stack, err := b.launch(t.Context(), "stack", setup{SLO: 5 * time.Second, Containers: []string{"noop"}})
	if err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, stack.url)
	now, err := stack.snapshot(t.Context())
	if err != nil || now.answers.predictions() != 1 || now.answers.defaults() != 0 {
		t.Errorf("the gateway counts %v, %v", now.answers, err)
	}
	if memory, err := stack.memory(); err != nil || memory < 1<<20 {
		t.Errorf("its memory is %d bytes, %v", memory, err)
	}
	b.family.stop()
	for _, c := range stack.children {
		if err := syscall.Kill(c.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the %s is still there: %v", c.name, err)
		}
	}
}

func TestBareRoutesAnswerAsTheGatewayDoes(t *testing.T) {
	b := newTestBench(t)
	for _, role := range []string{"bare", "barejson"} {
		c, err := b.role(t.Context(), role, setup{})
		if err != nil {
			t.Fatal(err)
		}
		mustAnswer(t, "http://"+c.Addr+queryPath)
	}
}

func mustAnswer(t *testing.T, url string) {
	t.Helper()
	reply, err := ask(t.Context(), url)
	if err != nil || !strings.HasPrefix(string(reply), `{"query_id":`) || !strings.HasSuffix(string(reply), `,"output":0.5,"default":false}`) {
		t.Errorf("got %s, %v", reply, err)
	}
}

func TestAChildDiesWithItsContext(t *testing.T) {
	b := newTestBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := b.role(ctx, "bare", setup{})
	if err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, "http://"+c.Addr+queryPath)
	cancel()
	err = eventually(t.Context(), func(ctx context.Context) error {
		if _, err := ask(ctx, "http://"+c.Addr+queryPath); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestARoleThatCannotStartSaysSo(t *testing.T) {
	b := newTestBench(t)
	if _, err := b.role(t.Context(), "typo", setup{}); err == nil || !strings.Contains(err.Error(), "typo did not start to listen") {
		t.Errorf("got %v", err)
	}
}

func TestAFloodIsAnswered(t *testing.T) {
	b := newTestBench(t)
	b.OverloadSeconds = 1
	stack, err := b.launch(t.Context(), "stack", setup{SLO: 5 * time.Second, CacheOff: true, Containers: []string{"noop"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.flood(t.Context(), stack, 50)
	if err != nil {
		t.Fatal(err)
	}
	if r := f.report; r.Sent < 75 || r.Good != r.Sent || f.settled == 0 || f.end == 0 {
		t.Errorf("got %+v", f)
	}
}

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

func TestTheEmbeddedGatewayAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	defer group.Wait()
	defer stop()
	g, err := embed(ctx, &group)
	if err != nil {
		t.Fatal(err)
	}
	for _, noCache := range []bool{true, false} {
		if c, err := parallel(2, time.Millisecond, predictor(ctx, g, noCache)); err != nil || c.nanos <= 0 {
			t.Errorf("without the cache %v: %+v, %v", noCache, c, err)
		}
	}
}

func TestASteadyRunSeesWhoIsMissing(t *testing.T) {
	b := newTestBench(t)
	s := setup{SLO: 2 * time.Second, CacheOff: true, Containers: []string{"noop", "stall"}}
	s.Policy.Kind = serving.PolicyMean
	stack, err := b.launch(t.Context(), "stack", s)
	if err != nil {
		t.Fatal(err)
	}
	run, err := b.keep(t.Context(), stack, 20, "model1:1", 200*time.Millisecond)
	if err != nil || run.report.Good == 0 || run.unanswered() != 0 || run.unnamed != 0 {
		t.Errorf("got %+v, %v", run, err)
	}
	run, err = b.keep(t.Context(), stack, 20, "model0:1", 200*time.Millisecond)
	if err != nil || run.unnamed != int64(run.report.Good) {
		t.Errorf("expecting another: got %+v, %v", run, err)
	}
}
