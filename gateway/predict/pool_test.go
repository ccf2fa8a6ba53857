package predict

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// A request that was given back is woken by the flights of its last user. That must
// neither end the wait of its next user nor show it a stranger's answer.
func TestAReusedRoundIsNotMisled(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", func(q arrival) (rpc.Answer, time.Duration) {
			return number(q.x), time.Duration(q.x) * time.Millisecond
		}, m1)
		t.serves(func(a *serving.App) { a.SLO = serving.Duration(time.Second) }, m1)
		pooled := t.p.request(1)
		t.p.release(pooled)
		t.p.pool.New = func() any { return pooled } // everybody gets the same, one after the other
		for round := range 5 {
			base := float64(100 * round)
			for i := range 10 { // leaves flights that land between 20 and 29 ms from now
				q := newQuery(base+20+float64(i), base)
				q.Timeout = 100 * time.Microsecond
				a, _ := t.predict(q)
				t.wantDefault(a, serving.MissedSLO)
			}
			a, took := t.predict(newQuery(base+50, base))
			t.wantOutput(a, base+50)
			if want := time.Duration(base+50) * time.Millisecond; took != want {
				t.Errorf("round %d: the answer took %v, want %v", round, took, want)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if _, err := one(ctx, t.p, newQuery(base+60, base)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a context that ended: %v", err)
			}
			cancel()
			a, _ = t.predict(newQuery(base+70, base))
			t.wantOutput(a, base+70)
		}
		var qs []serving.Query
		for i := range 3 * maxKept {
			qs = append(qs, *newQuery(1, float64(i)))
		}
		t.batch(qs)
		if n := cap(pooled.queries); n != 0 {
			t.Errorf("the request keeps %d queries", n)
		}
		t.batch(qs[:maxKept])
		if n := len(pooled.queries); n != maxKept {
			t.Errorf("the request keeps %d queries", n)
		}
		for _, w := range pooled.queries {
			if w.Query != nil || w.app != nil || len(w.attempts) != 0 || w.verdict.Output != nil || w.done {
				t.Errorf("a query in the pool keeps %+v", w)
			}
			for _, p := range w.attempts[:cap(w.attempts)] {
				if p.flight != nil || p.call != nil {
					t.Error("a query in the pool keeps a flight")
				}
			}
		}
	})
}

// TestStorm is everything at once: equal and different queries, batches, slow and
// failing replicas, queries that are cancelled or have hardly any time, caching
// and not. Every answer must be the one to its own question, and none may be late.
func TestStorm(t *testing.T) {
	bubble(t, func(t *rig) {
		random := rand.New(rand.NewPCG(3, 4))
		var mu sync.Mutex
		draw := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		behave := func(q arrival) (rpc.Answer, time.Duration) {
			after := time.Duration(draw(60)) * time.Millisecond
			switch draw(20) {
			case 0:
				return rpc.Answer{Status: rpc.Status(1 + draw(10)), Message: []byte("bad luck")}, after
			case 1:
				return rpc.Answer{}, never
			}
			return number(q.x), after
		}
		for _, name := range []string{"a", "b", "c"} {
			t.replica(name, behave, m1)
		}
		t.serves(func(a *serving.App) { a.Cache.TTL = serving.Duration(100 * time.Millisecond) }, m1)
		ask := func() (q *serving.Query) {
			q = newQuery(float64(draw(40)), float64(draw(2)))
			q.NoCache = draw(8) == 0
			q.Timeout = []time.Duration{0, 0, 20 * time.Millisecond, time.Millisecond}[draw(4)]
			return q
		}
		outputs := 0
		check := func(q *serving.Query, a serving.Prediction) {
			limit := slo
			if q.Timeout > 0 {
				limit = q.Timeout
			}
			if took := time.Since(q.Received); took > limit {
				t.Errorf("an answer took %v of %v", took, limit)
			}
			if a.Default {
				return
			}
			mu.Lock()
			outputs++
			mu.Unlock()
			x := math.Float64frombits(binary.LittleEndian.Uint64(q.Input.Data))
			if string(a.Output) != jsonOf(x) {
				t.Errorf("the answer to %v is %s", x, a.Output)
			}
		}
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				for range 50 {
					time.Sleep(time.Duration(draw(10)) * time.Millisecond)
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+draw(200))*time.Millisecond)
					if draw(4) == 0 {
						qs := make([]serving.Query, draw(30))
						for i := range qs {
							qs[i] = *ask()
							qs[i].Timeout = 0
						}
						answers, err := t.p.Predict(ctx, qs...)
						for i := range answers {
							check(&qs[i], answers[i])
						}
						if err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("a batch: %v", err)
						}
					} else {
						q := ask()
						a, err := one(ctx, t.p, q)
						if err == nil {
							check(q, a)
						} else if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("a query: %v", err)
						}
					}
					cancel()
				}
			})
		}
		all.Wait()
		if outputs < 3000 {
			t.Errorf("only %d outputs", outputs)
		}
	})
}
