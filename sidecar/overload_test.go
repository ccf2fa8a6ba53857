package sidecar

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"topsail/internal/obs"
	"topsail/rpc"
	"topsail/serving"
	"topsail/sidecar/queue"
)

// load is an open loop: queries arrive whether or not the earlier ones are answered.
type openLoop struct {
	rate    float64 // queries a second
	lasts   time.Duration
	slo     func() time.Duration
	cluster int // queries that arrive together
}

// outcome counts what became of the queries of a load.
type outcome struct {
	mu       sync.Mutex
	sent     int
	statuses map[rpc.Status]int
	good     int           // answered in time
	overrun  time.Duration // the most that an answer came after its deadline
	overruns int
}

func (o *outcome) Answer(it *queue.Item, a *rpc.Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statuses[a.Status]++
	late := -it.Left(time.Now())
	if late > 0 {
		o.overruns++
		o.overrun = max(o.overrun, late)
	} else if a.Status == rpc.StatusOK {
		o.good++
	}
}

type slowModel func(n int) time.Duration

func (m slowModel) PredictBatch(_ context.Context, items []*queue.Item) error {
	time.Sleep(m(len(items)))
	for _, it := range items {
		it.Answer(&rpc.Answer{})
	}
	return nil
}

func (l openLoop) run(p *pool) *outcome {
	o := &outcome{statuses: map[rpc.Status]int{}}
	end := time.Now().Add(l.lasts)
	r := rand.New(rand.NewPCG(1, 2))
	for time.Now().Before(end) {
		for range max(1, l.cluster) {
			now := time.Now()
			o.sent++
			p.submit(&queue.Item{Arrived: now, Deadline: now.Add(l.slo()), From: o})
		}
		time.Sleep(time.Duration(r.ExpFloat64() * float64(max(1, l.cluster)) / l.rate * 1e9))
	}
	time.Sleep(time.Second)
	return o
}

func testPool(spec serving.BatchSpec) *pool {
	v := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Doubles, Batch: spec}
	return newPool(0, v, DefaultLimits, NewMetrics(obs.NewRegistry()).pool(v.ModelID, "r"), func(*pool) {})
}

func TestProbe(t *testing.T) {
	jit := func(base time.Duration, sigma float64) slowModel {
		r := rand.New(rand.NewPCG(3, 4))
		return func(int) time.Duration {
			return time.Duration(float64(base) * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2))
		}
	}
	fix := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	r := rand.New(rand.NewPCG(5, 6))
	ms := time.Millisecond
	for _, c := range []struct {
		name     string
		spec     serving.BatchSpec
		models   []slowModel
		slo      func() time.Duration
		capacity float64
		factor   float64
	}{
		{"const", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, 0)}, fix(50 * ms), 4000, 3},
		{"const quantile", serving.BatchSpec{Strategy: "quantile", MaxSize: 8}, []slowModel{jit(2*ms, 0)}, fix(50 * ms), 4000, 3},
		{"const fixed", serving.BatchSpec{Strategy: "fixed", MaxSize: 8}, []slowModel{jit(2*ms, 0)}, fix(50 * ms), 4000, 3},
		{"const delay", serving.BatchSpec{MaxSize: 8, Delay: 2 * ms}, []slowModel{jit(2*ms, 0)}, fix(50 * ms), 4000, 3},
		{"jitter .3", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, .3)}, fix(50 * ms), 4000, 3},
		{"jitter 1", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, 1)}, fix(50 * ms), 4000, 3},
		{"jitter 1 at 1x", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, 1)}, fix(50 * ms), 4000, 1},
		{"tight slo", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, .3)}, fix(5 * ms), 4000, 3},
		{"mixed slo", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, .1)}, func() time.Duration { return time.Duration(5+r.IntN(95)) * ms }, 4000, 3},
		{"linear uncapped", serving.BatchSpec{}, []slowModel{func(n int) time.Duration { return 2*ms + time.Duration(n)*100*time.Microsecond }}, fix(50 * ms), 9200, 3},
		{"linear uncapped mixed", serving.BatchSpec{}, []slowModel{func(n int) time.Duration { return 2*ms + time.Duration(n)*100*time.Microsecond }}, func() time.Duration { return time.Duration(10+r.IntN(90)) * ms }, 9200, 3},
		{"linear quantile", serving.BatchSpec{Strategy: "quantile"}, []slowModel{func(n int) time.Duration { return 2*ms + time.Duration(n)*100*time.Microsecond }}, fix(50 * ms), 9200, 3},
		{"slow big fixed cost", serving.BatchSpec{}, []slowModel{func(n int) time.Duration { return 20*ms + time.Duration(n)*100*time.Microsecond }}, fix(50 * ms), 2000, 3},
		{"three", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, .1), jit(2*ms, .1), jit(2*ms, .1)}, fix(50 * ms), 12000, 3},
		{"hetero", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, .1), jit(2*ms, .1), jit(100*ms, .1)}, fix(50 * ms), 8000, 3},
		{"hetero .7x", serving.BatchSpec{MaxSize: 8}, []slowModel{jit(2*ms, .1), jit(2*ms, .1), jit(100*ms, .1)}, fix(50 * ms), 8000, .7},
		{"spikes", serving.BatchSpec{MaxSize: 8}, []slowModel{func() slowModel {
			i := 0
			return func(int) time.Duration {
				if i++; i%100 == 0 {
					return 40 * ms
				}
				return 2 * ms
			}
		}()}, fix(50 * ms), 3350, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := testPool(c.spec)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for _, m := range c.models {
				wg.Go(func() { p.serve(ctx, m, 0) })
			}
			synctest.Wait()
			o := openLoop{rate: c.capacity * c.factor, lasts: 2 * time.Second, slo: c.slo}.run(p)
			cancel()
			wg.Wait()
			t.Logf("%-22s goodput %.3f of capacity; sent %d good %d %v overruns %d by %v", c.name, float64(o.good)/(c.capacity*2), o.sent, o.good, o.statuses, o.overruns, o.overrun)
		})
	}
}
