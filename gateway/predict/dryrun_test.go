package predict

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// records is a Recorder in memory.
type records struct {
	mu      sync.Mutex // guards the following
	list    []*serving.Record
	refuses bool
	learns  bool // the last that was asked for
}

func (r *records) Wants(learns bool, _ int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learns = learns
	return !r.refuses
}

func (r *records) Keep(record *serving.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, record)
}

// A dry run waits for all, beyond the objective, and leaves no trace.
func TestDryRun(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": says(2, 3*slo), "c": fails(rpc.StatusModelError, "no")}), a1, b1, c1)
		kept := &records{}
		t.p.Records = kept
		s := &scripted{combine: acceptable}
		t.decides(s, a1, b1, c1)
		q, start := newQuery(7), time.Now()
		q.Timeout = time.Millisecond
		p, err := t.p.DryRun(t.Context(), q, 2*time.Second)
		if took := time.Since(start); err != nil || took != 3*slo || string(p.Output) != "1.0" {
			t.Fatalf("it took %v: %+v, %v", took, p, err)
		}
		m := p.Explained.Models
		if len(m) != 3 || string(m[1].Output) != "2.0" || m[2].Failure == "" {
			t.Errorf("explained as %+v", m)
		}
		if q.Explain || q.Timeout != time.Millisecond {
			t.Errorf("the query was changed: %+v", q)
		}
		for _, question := range f.questions() {
			if question.budget != 2*time.Second {
				t.Errorf("asked with %v, want all of its patience, behind who has less", question.budget)
			}
		}
		if len(kept.list) != 0 || t.member("a", "asked") != 0 || t.member("a", "answered") != 0 || f.cancelled() != 0 {
			t.Errorf("%d records, %v asked, %d cancelled", len(kept.list), t.member("a", "asked"), f.cancelled())
		}
		if n := t.metric(`topsail_gateway_answers_total{app="app",cause="ok"}`); n != 0 {
			t.Errorf("%v answers counted", n)
		}
		if n := t.metric(`topsail_selection_endings_total{app="app",ending="acceptable"}`); n > 0 {
			t.Errorf("%v endings counted", n)
		}
	})
}

// A dry run ends when its patience does, with what there is.
func TestADryRunEnds(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": says(1, 0), "b": silent}), a1, b1)
		t.decides(&scripted{}, a1, b1)
		start := time.Now()
		p, err := t.p.DryRun(t.Context(), newQuery(7), time.Second)
		if took := time.Since(start); err != nil || took != time.Second || string(p.Output) != "1.0" || named(p.Missing) != "b" {
			t.Errorf("it took %v: %+v, %v", took, p, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := t.p.DryRun(ctx, newQuery(8), time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without time: %v", err)
		}
	})
}

func TestOutput(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": says(1, slo), "b": silent, "c": fails(rpc.StatusModelError, "no")}), a1, b1, c1)
		t.links(func(a *serving.App) { a.Policy.Kind = serving.PolicyVote }, a1, b1, c1)
		ask := func(id serving.ModelID) (string, bool, error) {
			out, cached, err := t.p.Output(t.Context(), newQuery(7), id, time.Second)
			if err != nil {
				return "", cached, err
			}
			return string(out.JSON), cached, nil
		}
		if got, cached, err := ask(a1); got != "1.0" || cached || err != nil {
			t.Errorf("%s %v %v", got, cached, err)
		}
		if got, cached, err := ask(a1); got != "1.0" || !cached || err != nil {
			t.Errorf("again: %s %v %v", got, cached, err)
		}
		for id, want := range map[serving.ModelID]serving.Cause{b1: serving.MissedSLO, c1: serving.ModelError} {
			_, _, err := ask(id)
			if failure, ok := errors.AsType[*serving.Failure](err); !ok || failure.Cause != want {
				t.Errorf("%v: %v, want %v", id, err, want)
			}
		}
		refused := func(id serving.ModelID, q *serving.Query) {
			t.Helper()
			_, _, err := t.p.Output(t.Context(), q, id, time.Second)
			if _, ok := errors.AsType[*serving.QueryError](err); !ok {
				t.Errorf("%v: %v, want a refusal", id, err)
			}
		}
		refused(m1, newQuery(7))
		refused(a1, &serving.Query{App: "app", Input: serving.Input{Type: serving.Strings}})
		if _, _, err := t.p.Output(t.Context(), newQuery(9), a1, -1); err == nil {
			t.Error("an output without any time")
		}
		if n := t.metric(`topsail_gateway_answers_total{app="app",cause="ok"}`); n != 0 {
			t.Errorf("%v answers counted", n)
		}
	})
}

func TestRecordsOfAnswers(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{
			"a": says(1, 0), "b": silent,
			"c": func(arrival) (rpc.Answer, time.Duration) {
				return rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Text(strings.Repeat("x", serving.MaxRecordedOutput)))}, 0
			},
		}), a1, b1, c1)
		kept := &records{}
		t.p.Records = kept
		t.decides(&scripted{}, a1, b1, c1)
		q := newQuery(7)
		q.User, q.Context = "ann", "night"
		p, _ := t.predict(q)
		if len(kept.list) != 1 || kept.learns {
			t.Fatalf("%d records, learns %v", len(kept.list), kept.learns)
		}
		r := kept.list[0]
		if r.QueryID != p.QueryID || r.App != "app" || r.User != "ann" || r.Context != "night" || r.InputType != serving.Doubles ||
			string(r.Input) != string(q.Input.Data) || string(r.Output) != "1.0" || !r.At.Equal(time.Now()) || r.Expires.Sub(r.At) != 15*time.Minute {
			t.Errorf("recorded %+v", r)
		}
		if len(r.Asked) != 3 || r.Asked[0].ModelID != a1 || string(r.Asked[0].Output) != "1.0" || r.Asked[0].Probability != 0.5 || r.Asked[1].Output != nil || r.Asked[2].Output != nil {
			t.Errorf("recorded %+v, want no silent and no large output", r.Asked)
		}
		t.decides(&scripted{}, b1)
		t.predict(newQuery(8))
		if r := kept.list[1]; r.Output != nil {
			t.Errorf("a default was recorded as %s", r.Output)
		}
		kept.refuses = true
		t.predict(newQuery(9))
		if len(kept.list) != 2 {
			t.Error("a record that nobody wanted")
		}
	})
}

// told is a Learner that remembers what it was told.
type told struct {
	mu   sync.Mutex // guards the following
	sums map[serving.ModelID]selection.Tally
	away error
}

func (o *told) Observe(_ context.Context, _ *state.App, tallies []selection.Tally) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away != nil {
		return o.away
	}
	for _, t := range tallies {
		sum := o.sums[t.ModelID]
		o.sums[t.ModelID] = selection.Tally{
			ModelID: t.ModelID, Answers: sum.Answers + t.Answers, Failures: sum.Failures + t.Failures, Missed: sum.Missed + t.Missed,
		}
	}
	return nil
}

func (o *told) set(away error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = away
}

// What becomes of each question is told to a policy that observes, once, also when it
// could not be stored at first.
func TestTallies(t *testing.T) {
	a2 := id("a", "2")
	bubble(t, func(t *rig) {
		t.replica("r", func(q arrival) (rpc.Answer, time.Duration) {
			switch {
			case q.version == a2:
				return number(q.x), 0
			case q.x == 1:
				return rpc.Answer{Status: rpc.StatusModelError}, 0
			case q.x == 2:
				return rpc.Answer{}, never
			}
			return number(q.x), 0
		}, a1, a2)
		t.links(func(a *serving.App) {
			a.Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Weights: map[string]float64{"1": 1}}
		}, a1, a2)
		to := &told{sums: map[serving.ModelID]selection.Tally{}, away: errors.New("away")}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- t.p.Observe(ctx, to, t.log) }()
		for _, x := range []float64{1, 2, 3, 3} {
			q := newQuery(x)
			q.NoCache = true
			t.predict(q)
		}
		dry := newQuery(4)
		if _, err := t.p.DryRun(t.Context(), dry, time.Second); err != nil {
			t.Error(err)
		}
		pinned := newQuery(5)
		pinned.Version = "1"
		t.predict(pinned)
		time.Sleep(5 * observeEvery)
		to.set(nil)
		time.Sleep(5 * observeEvery)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Observe ended with %v", err)
		}
		if got, want := to.sums[a1], (selection.Tally{ModelID: a1, Answers: 2, Failures: 1, Missed: 1}); got != want {
			t.Errorf("told %+v, want %+v", got, want)
		}
		if got, want := to.sums[a2].Answers, 1.0; got != want {
			t.Errorf("version 2 answered %v times, want once, for 1 that failed", got)
		}
	})
}
