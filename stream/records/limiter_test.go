package records

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestLimiterStaysWithinItsBounds, and lets in as many as it says.
func TestLimiterStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 100).Draw(t, "most")
		l := newLimiter(most)
		var inside []uint64
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				ok := l.tryAcquire()
				if ok != (float64(len(inside))+1 <= l.limit) {
					t.Fatalf("with %d in flight of %v: %v", len(inside), l.limit, ok)
				}
				if ok {
					inside = append(inside, l.ask(rapid.IntRange(0, 200).Draw(t, "replicas")))
				}
			},
			"answer": func(t *rapid.T) {
				if len(inside) == 0 {
					t.Skip("nothing is in flight")
				}
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "which")
				l.answered(inside[i], rapid.Bool().Draw(t, "busy"))
				if rapid.Bool().Draw(t, "again") { // in the same slot
					inside[i] = l.ask(rapid.IntRange(0, 200).Draw(t, "replicas"))
					return
				}
				l.release()
				inside = append(inside[:i], inside[i+1:]...)
			},
			"": func(t *rapid.T) {
				if l.inFlight != len(inside) || l.limit > float64(most) || l.limit < l.least() {
					t.Fatalf("%d in flight, %d counted, limit %v of %d", len(inside), l.inFlight, l.limit, most)
				}
			},
		})
	})
}

// TestLimiterDecreasesOnce for all that were in flight.
func TestLimiterDecreasesOnce(t *testing.T) {
	l := newLimiter(300)
	var inside []uint64
	l.ask(1)
	l.limit = 200
	for range 200 {
		if !l.tryAcquire() {
			t.Fatal("no room within the limit")
		}
		inside = append(inside, l.ask(1))
	}
	for _, number := range inside {
		l.answered(number, true)
		l.release()
	}
	if l.limit != 160 {
		t.Errorf("limit %v", l.limit)
	}
}

// TestLimiterReturns within ten rounds of answers to where one moment of busy replicas took it from.
func TestLimiterReturns(t *testing.T) {
	l := newLimiter(1000)
	l.ask(4)
	l.limit, l.decrease, l.inFlight = 256, 1, 256
	l.answered(l.ask(4), true)
	if l.limit > 205 {
		t.Fatalf("limit %v", l.limit)
	}
	for range 10 * 205 {
		l.answered(l.ask(4), false)
	}
	if l.limit < 256 || l.limit > 450 {
		t.Errorf("limit %v after ten rounds", l.limit)
	}
}

// TestLimiterForgetsReplicasThatWent, and begins with one for each that came.
func TestLimiterForgetsReplicasThatWent(t *testing.T) {
	l := newLimiter(100)
	l.answered(l.ask(10), true)
	l.ask(0)
	if l.ask(4); l.limit != 4 || l.decrease != 0 {
		t.Errorf("limit %v", l.limit)
	}
	if l.ask(6); l.limit != 6 {
		t.Errorf("limit %v", l.limit)
	}
}

func TestAcquiringEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1)
		require.NoError(t, l.acquire(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.acquire(ctx); err == nil {
			t.Error("two acquired where there is room for one")
		}
		l.release()
		if err := l.acquire(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// fleet is replicas behind a gateway: each takes one input after another, for a fixed time, and
// refuses what it could not answer within the objective. Late outputs enter the cache.
type fleet struct {
	takes, objective time.Duration

	mu       sync.Mutex
	free     []time.Time // by replica: when it is done with what it has accepted
	wait     time.Duration
	outputs  map[string]time.Time // by input: when its output is there
	asked    int
	refused  int
	missed   int
	answered int
}

const hop = 300 * time.Microsecond // from the job to a replica and back

func (f *fleet) App(name string) (*serving.App, error) {
	return &serving.App{Name: name, InputType: serving.Doubles, Models: []string{"m"}, SLO: serving.Duration(f.objective)}, nil
}

func (f *fleet) Capacity(string) (int, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.free), f.wait
}

// accept gives an input to the replica that is free first, and says when its output is there.
func (f *fleet) accept(now time.Time) (done time.Time, ok bool) {
	if len(f.free) == 0 {
		return time.Time{}, false
	}
	first := 0
	for i := range f.free {
		if f.free[i].Before(f.free[first]) {
			first = i
		}
	}
	f.wait = max(f.free[first].Sub(now), 0)
	if f.wait > 0 && f.wait+f.takes > f.objective {
		return time.Time{}, false
	}
	done = now.Add(f.wait + f.takes)
	f.free[first] = done
	return done, true
}

func (f *fleet) Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error) {
	p, err := f.predict(ctx, &qs[0])
	return []serving.Prediction{p}, err
}

func (f *fleet) predict(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
	time.Sleep(hop)
	now, key := time.Now(), string(q.Input.Data)
	f.mu.Lock()
	f.asked++
	done, known := f.outputs[key]
	if !known {
		var ok bool
		if done, ok = f.accept(now); !ok {
			f.refused++
			f.mu.Unlock()
			if len(f.free) == 0 {
				time.Sleep(f.objective)
				return missing(serving.NoReplica), nil
			}
			return missing(serving.RefusedLate), nil
		}
		f.outputs[key] = done
	}
	f.mu.Unlock()
	if left := done.Sub(now); left > f.objective-hop {
		time.Sleep(f.objective - hop)
		f.mu.Lock()
		f.missed++
		f.mu.Unlock()
		return missing(serving.MissedSLO), nil
	} else if left > 0 {
		time.Sleep(left)
	}
	p, err := double(ctx, q)
	p.Cached = known
	f.mu.Lock()
	f.answered++
	for i := range f.free {
		f.wait = max(min(f.wait, time.Until(f.free[i])), 0)
	}
	f.mu.Unlock()
	return p, err
}

// neighbour is another app of the same replicas, which sends queries at a fixed rate.
func (f *fleet) neighbour(ctx context.Context, every time.Duration) (asked, refused int) {
	for ctx.Err() == nil {
		time.Sleep(every)
		f.mu.Lock()
		asked++
		if _, ok := f.accept(time.Now()); !ok {
			refused++
		}
		f.mu.Unlock()
	}
	return asked, refused
}

// TestStreamsGoAtThePaceOfTheirReplicas with the defaults of a job: at least 0.85 of what the
// replicas can do, or of the half that another app leaves, and no default.
func TestStreamsGoAtThePaceOfTheirReplicas(t *testing.T) {
	for _, one := range []struct{ takes, objective time.Duration }{
		{time.Millisecond, 100 * time.Millisecond},
		{10 * time.Millisecond, 100 * time.Millisecond},
		{10 * time.Millisecond, 50 * time.Millisecond},
		{10 * time.Millisecond, 15 * time.Millisecond},
		{100 * time.Millisecond, time.Second},
		{100 * time.Millisecond, 100 * time.Millisecond},
	} {
		for _, replicas := range []int{1, 4} {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v within %v by %d, shared %v", one.takes, one.objective, replicas, shared), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						f := &fleet{takes: one.takes, objective: one.objective, free: make([]time.Time, replicas), outputs: map[string]time.Time{}}
						capacity := float64(replicas) / one.takes.Seconds()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						var others sync.WaitGroup
						asked, refused := 0, 0
						if shared {
							capacity /= 2
							others.Go(func() { asked, refused = f.neighbour(ctx, time.Duration(float64(time.Second)/capacity)) })
						}
						records := int(min(15*capacity, max(2000, capacity)))
						broker := newMemory("in")
						for i := range records {
							broker.write(jsonRecord(fmt.Sprint(i), float64(i)))
						}
						began := time.Now()
						j, _, _ := run(t, broker, f, nil)
						for len(broker.read("out")) < records && time.Since(began) < time.Hour {
							settled(100 * time.Millisecond)
						}
						share := float64(records) / time.Since(began).Seconds() / capacity
						cancel()
						others.Wait()
						t.Logf("%.0f/s, %.2f of the capacity; asked %d, refused %d, missed %d; the other app: asked %d, refused %d", share*capacity, share, f.asked, f.refused, f.missed, asked, refused)
						if tally := j.Status().Tally; tally.Defaults != 0 || tally.Results != uint64(records) {
							t.Errorf("%+v", tally)
						}
						if share < 0.85 {
							t.Errorf("%.2f of the capacity", share)
						}
					})
				})
			}
		}
	}
}

// TestAModelThatIsDownIsWaitedFor: its records are answered once it is back, and it is said
// meanwhile that they wait.
func TestAModelThatIsDownIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := &fleet{takes: 10 * time.Millisecond, objective: 100 * time.Millisecond, outputs: map[string]time.Time{}}
		broker := newMemory("in")
		for i := range 300 {
			broker.write(jsonRecord(fmt.Sprint(i), float64(i)))
		}
		registry := obs.NewRegistry()
		j, _, _ := run(t, broker, f, func(c *Config) { c.Metrics = NewMetrics(registry) })
		waiting := func() float64 { return gathered(t, registry)[`topsail_stream_waiting_seconds{stream="job"}`] }
		settled(time.Hour)
		if waited := waiting(); waited < 3590 {
			t.Errorf("records wait for %v s", waited)
		}
		if err := j.Ready(); err == nil || len(broker.read("out")) != 0 {
			t.Fatalf("ready: %v, %d results", err, len(broker.read("out")))
		}
		f.mu.Lock()
		f.free = make([]time.Time, 1)
		f.mu.Unlock()
		settled(5 * time.Second)
		if err := j.Ready(); err != nil || len(broker.read("out")) != 300 || j.Status().Defaults != 0 || waiting() != 0 {
			t.Errorf("ready: %v, %d results, %+v", err, len(broker.read("out")), j.Status().Tally)
		}
	})
}

// TestEndsWhileRecordsWait for replicas: it does not go on for as long as Drain.
func TestEndsWhileRecordsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := &fleet{takes: 10 * time.Millisecond, objective: 100 * time.Millisecond, outputs: map[string]time.Time{}}
		broker := newMemory("in")
		broker.write(jsonRecord("a", 1))
		_, _, stop := run(t, broker, f, func(c *Config) { c.Drain = time.Hour })
		settled(time.Minute)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second || len(broker.read("out")) > 0 {
			t.Errorf("it ended after %v, with %d results", took, len(broker.read("out")))
		}
	})
}

// TestAnInputThatEndsItsContainers gets the default in the end, and does not stop the others.
func TestAnInputThatEndsItsContainers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			if p, err := double(ctx, q); string(p.Output) != "26" {
				return p, err
			}
			return missing(serving.ContainerError), nil
		})
		broker := newMemory("in")
		broker.write(jsonRecord("12", 12), jsonRecord("13", 13), jsonRecord("14", 14))
		j, _, _ := run(t, broker, s, nil)
		settled(2 * time.Minute)
		if got := results(t, broker, "out"); len(got) != 3 || !got["13"].Default || got["12"].Default || got["14"].Default {
			t.Errorf("%+v", got)
		}
		if n := len(s.asked()); n != 3+maxCrashes || j.Ready() != nil {
			t.Errorf("asked %d times, ready: %v", n, j.Ready())
		}
	})
}
