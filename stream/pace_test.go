package stream

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"topsail/serving"
)

// TestPaceStaysWithinItsBounds, and lets in as many as it says.
func TestPaceStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 100).Draw(t, "most")
		p := newPace(most)
		var inside []uint64
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				number, ok := p.tryEnter()
				if ok != (float64(len(inside)) < p.limit) {
					t.Fatalf("with %d inside of %v: %v", len(inside), p.limit, ok)
				}
				if ok {
					inside = append(inside, number)
				}
			},
			"leave": func(t *rapid.T) {
				if len(inside) == 0 {
					t.Skip("nobody is inside")
				}
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "who")
				p.leave(inside[i], rapid.Bool().Draw(t, "missed"))
				inside = append(inside[:i], inside[i+1:]...)
			},
			"": func(t *rapid.T) {
				if p.out != len(inside) || p.limit > float64(most) || p.limit < float64(min(most, paceFirst)) {
					t.Fatalf("%d are inside of %d, limit %v of %d", p.out, len(inside), p.limit, most)
				}
			},
		})
	})
}

// TestPaceIsCutOnce for all that were under way.
func TestPaceIsCutOnce(t *testing.T) {
	p := newPace(100)
	p.limit = 100
	var inside []uint64
	for range 100 {
		number, _ := p.tryEnter()
		inside = append(inside, number)
	}
	for _, number := range inside {
		p.leave(number, true)
	}
	if p.limit != 90 {
		t.Errorf("limit %v", p.limit)
	}
}

// TestPaceFindsTheCapacity: a replica that answers a certain number at a time in time,
// and misses the others.
func TestPaceFindsTheCapacity(t *testing.T) {
	for _, capacity := range []int{30, 100} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				busy, answered, missed := 0, 0, 0
				s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
					mu.Lock()
					busy++
					late := busy > capacity
					mu.Unlock()
					time.Sleep(10 * time.Millisecond)
					mu.Lock()
					busy--
					if late {
						missed++
					} else {
						answered++
					}
					mu.Unlock()
					if late {
						return missing(serving.RefusedLate), nil
					}
					return double(ctx, q)
				})
				broker := newMemory("in")
				for i := range 20_000 {
					broker.write(jsonRecord(fmt.Sprint(i), 1))
				}
				began := time.Now()
				run(t, broker, s, func(c *Config) { c.Batch, c.Patience = 1000, time.Minute })
				for len(broker.read("out")) < 20_000 && time.Since(began) < time.Hour {
					settled(time.Second)
				}
				for id, r := range results(t, broker, "out") {
					if r.Default {
						t.Fatalf("record %s has a default", id)
					}
				}
				share := float64(missed) / float64(answered+missed)
				took := time.Since(began)
				ideal := time.Duration(20_000/capacity) * 10 * time.Millisecond
				if share > 0.25 || took > 3*ideal {
					t.Errorf("%.3f of the asking was for nothing, and it took %v where %v is the least", share, took, ideal)
				}
			})
		})
	}
}

func TestEnteringEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(1)
		number, err := p.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.enter(ctx); err == nil {
			t.Error("two entered where there is room for one")
		}
		p.leave(number, false)
		if _, err := p.enter(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
