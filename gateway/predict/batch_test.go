package predict

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func (r *rig) batch(qs []serving.Query) []serving.Prediction {
	r.Helper()
	answers, err := r.p.Predict(context.Background(), qs...)
	if err != nil || len(answers) != len(qs) {
		r.Fatalf("%d answers to %d queries: %v", len(answers), len(qs), err)
	}
	return answers
}

// Each query of a batch has its own fate, and their answers come in order, when the
// last has its own.
func TestABatchOfManyFates(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", func(q arrival) (rpc.Answer, time.Duration) {
			switch q.x {
			case 1:
				return number(1), 30 * time.Millisecond
			case 2:
				return rpc.Answer{Status: rpc.StatusModelError, Message: []byte("no")}, 0
			case 3:
				return rpc.Answer{}, never
			}
			return number(q.x), time.Millisecond
		}, m1)
		t.serves(nil, m1)
		t.predict(newQuery(5)) // now cached
		qs := []serving.Query{*newQuery(1), *newQuery(2), *newQuery(3), *newQuery(4), *newQuery(5), *newQuery(1), *newQuery(6)}
		qs[2].Timeout = 50 * time.Millisecond
		qs[6].App = "nosuch"
		if _, err := t.p.Predict(context.Background(), qs...); !errors.Is(err, serving.ErrUnknownApp) {
			t.Fatalf("with an unknown app: %v", err)
		}
		start := time.Now()
		answers := t.batch(qs[:6])
		if took := time.Since(start); took != 50*time.Millisecond-margin {
			t.Errorf("it took %v", took)
		}
		t.wantOutput(answers[0], 1)
		t.wantDefault(answers[1], serving.ModelError)
		t.wantDefault(answers[2], serving.MissedSLO)
		t.wantOutput(answers[3], 4)
		t.wantOutput(answers[4], 5)
		t.wantOutput(answers[5], 1)
		for i, cached := range []bool{false, false, false, false, true, true} {
			if answers[i].Cached != cached {
				t.Errorf("answer %d is from the cache: %v", i, answers[i].Cached)
			}
		}
		seen := map[int64]bool{}
		for _, a := range answers {
			seen[a.QueryID] = true
		}
		if len(seen) != 6 {
			t.Errorf("%d query ids for 6 answers", len(seen))
		}
	})
}

func TestAnEmptyBatch(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		if answers := t.batch(nil); len(answers) != 0 {
			t.Errorf("%d answers", len(answers))
		}
	})
}

// One query that cannot be refuses the whole batch before anybody is asked.
func TestOneBadQueryRefusesTheBatch(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(0), m1)
		t.serves(nil, m1)
		for name, spoil := range map[string]func(q *serving.Query){
			"a wrong type":       func(q *serving.Query) { q.Input.Type = serving.Ints },
			"an unknown version": func(q *serving.Query) { q.Version = "9" },
			"an unknown app":     func(q *serving.Query) { q.App = "nosuch" },
		} {
			for at := range 5 {
				qs := make([]serving.Query, 5)
				for i := range qs {
					qs[i] = *newQuery(float64(i))
				}
				spoil(&qs[at])
				if answers, err := t.p.Predict(context.Background(), qs...); err == nil {
					t.Errorf("%s at %d: %d answers", name, at, len(answers))
				}
			}
		}
		t.settle()
		if n := len(f.questions()); n != 0 || t.cache.Open() != 0 {
			t.Errorf("%d questions were asked, %d are open", n, t.cache.Open())
		}
		if n := t.metric(`topsail_gateway_query_seconds_count{app="app"}`); n > 0 {
			t.Errorf("%v queries were counted", n)
		}
	})
}

// Batches of all sizes share the pool of rounds with single queries.
func TestBatchesOfAllSizes(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", echoes(time.Millisecond), m1)
		t.serves(nil, m1)
		next := 0.0
		for _, size := range []int{1, 500, 2, maxKept, 1, maxKept + 1, 3, 100, 0, 40} {
			qs := make([]serving.Query, size)
			for i := range qs {
				next++
				qs[i] = *newQuery(next)
			}
			for i, a := range t.batch(qs) {
				t.wantOutput(a, next-float64(size-1-i))
			}
			next++
			a, _ := t.predict(newQuery(next))
			t.wantOutput(a, next)
		}
	})
}
