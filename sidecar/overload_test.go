package sidecar

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// timed is a container that takes a time and does nothing else.
type timed func(n int) time.Duration

func (took timed) Begin(items []*queue.Item, ended func(error)) func() {
	return byLoad(func(l queue.Load) time.Duration { return took(l.N) }).Begin(items, ended)
}

// byLoad is one that looks at how large the inputs are, too.
type byLoad func(queue.Load) time.Duration

func (took byLoad) Begin(items []*queue.Item, ended func(error)) func() {
	time.AfterFunc(took(queue.LoadOf(items)), func() {
		for _, it := range items {
			it.Answer(&rpc.Answer{})
		}
		ended(nil)
	})
	return func() {}
}

// flat takes d whatever the size, more or less: sigma is that of a log-normal
// distribution with this mean.
func flat(d time.Duration, sigma float64) timed {
	r := rand.New(rand.NewPCG(3, 4))
	return func(int) time.Duration {
		return time.Duration(float64(d) * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2))
	}
}

// hiccups takes 2 ms, and 40 ms once in a hundred times.
func hiccups() timed {
	n := 0
	return func(int) time.Duration {
		if n++; n%100 == 0 {
			return 40 * ms
		}
		return 2 * ms
	}
}

func linear(base, each time.Duration) timed {
	return func(n int) time.Duration { return base + time.Duration(n)*each }
}

// load is a pool under queries that arrive at random, in an open loop: whether or
// not those before them were answered. It is for a synctest bubble.
type load struct {
	t      *testing.T
	pool   *pool
	random *rand.Rand
	stop   func()
	bytes  func() int // of an input; nil: none

	mu       sync.Mutex
	sent     int
	statuses map[rpc.Status]int
	good     int // answered in time
	overruns int // answered late, in whatever way
	overrun  time.Duration
}

func newLoad[R batch.Runner](t *testing.T, spec serving.BatchSpec, containers ...R) *load {
	v := version("m", func(v *serving.Version) { v.Batch = spec })
	l := &load{t: t, random: rand.New(rand.NewPCG(1, 2))}
	l.reset()
	l.pool = newPool(0, v, DefaultLimits, NewMetrics(obs.NewRegistry()).pool(v.ModelID, "m/0"), func(*pool) {})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, c := range containers {
		wg.Go(func() { l.pool.serve(ctx, l.pool.whole(), worker{Runner: c}) })
	}
	l.stop = func() { cancel(); wg.Wait() }
	synctest.Wait()
	return l
}

func (l *load) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.good, l.overruns, l.overrun, l.statuses = 0, 0, 0, 0, map[rpc.Status]int{}
}

// send sends rate queries a second for a while.
func (l *load) send(rate float64, lasts time.Duration, slo func() time.Duration) {
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		now := time.Now()
		l.sent++
		it := &queue.Item{Arrived: now, Deadline: now.Add(slo()), From: l}
		if l.bytes != nil {
			it.Ask.Payload = make([]byte, l.bytes())
		}
		l.pool.submit(it)
		l.pool.wake()
		time.Sleep(time.Duration(l.random.ExpFloat64() / rate * 1e9))
	}
}

func (l *load) Answer(it *queue.Item, a *rpc.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[a.Status]++
	if late := -it.Left(time.Now()); late > 0 {
		l.overruns++
		l.overrun = max(l.overrun, late)
	} else if a.Status == rpc.StatusOK {
		l.good++
	}
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// A model that is asked for three times of what it can do, for two seconds, must
// do nearly what it can, and the rest must hear in time that it cannot.
func TestOverload(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	mixed := func() time.Duration { return time.Duration(5+random.IntN(95)) * ms }
	eight := serving.BatchSpec{MaxSize: 8}
	for _, c := range []struct {
		name       string
		spec       serving.BatchSpec
		containers []timed
		slo        func() time.Duration
		capacity   float64 // queries a second
		factor     float64 // of it are sent
		good       float64 // of it must be answered in time
		late       float64 // of what is sent may be answered late
	}{
		{"2 ms a batch", eight, []timed{flat(2*ms, 0)}, always(50 * ms), 4000, 3, 0.98, 0},
		{"with a delay", serving.BatchSpec{MaxSize: 8, Delay: serving.Duration(2 * ms)}, []timed{flat(2*ms, 0)}, always(50 * ms), 4000, 3, 0.98, 0},
		{"of a fixed size", serving.BatchSpec{Strategy: "fixed", MaxSize: 8}, []timed{flat(2*ms, 0)}, always(50 * ms), 4000, 3, 0.98, 0},
		{"sized by quantile", serving.BatchSpec{Strategy: "quantile", MaxSize: 8}, []timed{flat(2*ms, 0)}, always(50 * ms), 4000, 3, 0.98, 0},
		{"with noise", eight, []timed{flat(2*ms, 0.3)}, always(50 * ms), 4000, 3, 0.95, 0.005},
		{"with much noise", eight, []timed{flat(2*ms, 1)}, always(50 * ms), 4000, 3, 0.9, 0.1},
		{"with hiccups", eight, []timed{hiccups()}, always(50 * ms), 3361, 3, 0.95, 0.1},
		{"all budgets", eight, []timed{flat(2*ms, 0.1)}, mixed, 4000, 3, 0.95, 0.004},
		{"tight budgets", eight, []timed{flat(2*ms, 0.3)}, always(5 * ms), 4000, 3, 0.75, 0.03},
		{"not quite overloaded", eight, []timed{flat(2*ms, 0.3)}, always(50 * ms), 4000, 0.8, 0.79, 0.001},
		// Here half the budget is not enough for a batch of 1, and less is left when a
		// query has to wait for one.
		{"a budget of two batches", eight, []timed{flat(20*ms, 0.25)}, always(40 * ms), 400, 3, 0.4, 0.04},
		{"a budget of hardly more than one", eight, []timed{flat(20*ms, 0.25)}, always(25 * ms), 50, 0.4, 0.3, 0.15},
		// The right size takes 22.5 ms, nine tenths of half the budget, and has 205.
		{"a size to be found", serving.BatchSpec{}, []timed{linear(2*ms, ms/10)}, always(50 * ms), 9111, 3, 0.95, 0.01},
		{"found by quantile", serving.BatchSpec{Strategy: "quantile"}, []timed{linear(2*ms, ms/10)}, always(50 * ms), 9200, 3, 0.95, 0.01},
		{"three containers", eight, []timed{flat(2*ms, 0.1), flat(2*ms, 0.1), flat(2*ms, 0.1)}, always(50 * ms), 12000, 3, 0.95, 0.02},
		// One that is hopelessly slow must not cost what the others can do.
		{"a slow one among three", eight, []timed{flat(2*ms, 0.1), flat(2*ms, 0.1), flat(100*ms, 0.1)}, always(50 * ms), 8000, 3, 0.95, 0.02},
		{"and not overloaded", eight, []timed{flat(2*ms, 0.1), flat(2*ms, 0.1), flat(100*ms, 0.1)}, always(50 * ms), 8000, 0.7, 0.69, 0.002},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoad(t, c.spec, c.containers...)
				l.send(c.capacity*c.factor, 2*time.Second, c.slo)
				pass(time.Second)
				good, late := float64(l.good)/(2*c.capacity), float64(l.overruns)/float64(l.sent)
				t.Logf("goodput %.3f of capacity; %.4f answered late, by up to %v; %v", good, late, l.overrun, l.statuses)
				if good < c.good || late > c.late {
					t.Errorf("want a goodput of %.2f or more, and at most %.3f late", c.good, c.late)
				}
				answered := 0
				for _, n := range l.statuses {
					answered += n
				}
				if answered != l.sent {
					t.Errorf("%d of %d were answered", answered, l.sent)
				}
				l.stop()
			})
		})
	}
}

// Inputs of very different sizes, and a model that takes its time for their bytes or for their number: what is late, and
// what is answered in time, of what is sent.
func TestInputsOfDifferentSizes(t *testing.T) {
	const objective, kilobyte = 50 * ms, 2 * ms
	byBytes := byLoad(func(l queue.Load) time.Duration { return 2*ms + kilobyte*time.Duration(l.Bytes)/1000 })
	byNumber := byLoad(func(l queue.Load) time.Duration { return 2*ms + kilobyte*time.Duration(l.N) })
	capacity := float64((objective/2-2*ms)/kilobyte) / (objective / 2).Seconds() // of inputs of one size
	for _, c := range []struct {
		name   string
		model  byLoad
		sigma  float64 // of a log-normal distribution with a mean of 1000 bytes
		factor float64
		good   float64
		late   float64
	}{
		{"by bytes, half of capacity", byBytes, 1.2, 0.5, 0.975, 0.0012},
		{"by bytes, 0.9 of capacity", byBytes, 1.2, 0.9, 0.92, 0.0012},
		{"by bytes, overloaded", byBytes, 1.2, 1.5, 0.7, 0.0012},
		{"by bytes, three times of capacity", byBytes, 1.2, 3, 0.37, 0.0012},
		{"of one size", byBytes, 0, 0.9, 0.985, 0},
		{"of one size, overloaded", byBytes, 0, 1.5, 0.64, 0},
		{"by number", byNumber, 1.2, 0.9, 0.985, 0},
		{"by number, overloaded", byNumber, 1.2, 1.5, 0.64, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoad(t, serving.BatchSpec{}, c.model)
				l.bytes = func() int { return int(1000 * math.Exp(c.sigma*l.random.NormFloat64()-c.sigma*c.sigma/2)) }
				l.send(capacity*c.factor, 2*time.Second, always(objective))
				pass(200 * ms)
				l.reset()
				l.send(capacity*c.factor, 5*time.Second, always(objective))
				pass(200 * ms)
				good, late := float64(l.good)/float64(l.sent), float64(l.overruns)/float64(l.sent)
				t.Logf("%.4f in time, %.4f late; %v", good, late, l.statuses)
				if good < c.good || late > c.late {
					t.Errorf("want %.3f or more in time, and at most %.4f late", c.good, c.late)
				}
				l.stop()
			})
		})
	}
}

// A model that was held up must not be shut out of its own queue when it is fast
// again: an estimate is only mended by trying.
func TestAdmissionIsNotLockedOut(t *testing.T) {
	for name, slow := range map[string]int{"once": 1, "twice": 2, "three times": 3, "ten times": 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				left := 0
				var recovered time.Time
				l := newLoad(t, serving.BatchSpec{}, timed(func(int) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					if left == 0 {
						return 2 * ms
					}
					if left--; left == 0 {
						recovered = time.Now().Add(5 * time.Second)
					}
					return 5 * time.Second
				}))
				slo := always(100 * ms)
				l.send(500, time.Second, slo)
				mu.Lock()
				left = slow
				mu.Unlock()
				for {
					l.send(500, 100*ms, slo)
					mu.Lock()
					over := left == 0 && !recovered.IsZero() && time.Now().After(recovered)
					mu.Unlock()
					if over {
						break
					}
				}
				l.send(500, time.Until(recovered.Add(500*ms)), slo)
				pass(200 * ms) // those in the queue
				l.reset()
				l.send(500, time.Second, slo)
				pass(200 * ms)
				if share := float64(l.good) / float64(l.sent); share < 0.99 {
					t.Errorf("half a second after the model was fast again %.2f were answered in time: %v", share, l.statuses)
				}
				l.stop()
			})
		})
	}
}

// A container whose batch is overdue keeps its queue closed while another is there
// only as far as the other cannot do it.
func TestOneHungContainerOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		hung := false
		l := newLoad(t, serving.BatchSpec{MaxSize: 8}, flat(2*ms, 0), func(int) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if hung {
				return 5 * time.Second
			}
			return 2 * ms
		})
		slo := always(50 * ms)
		l.send(2000, time.Second, slo)
		mu.Lock()
		hung = true
		mu.Unlock()
		l.send(2000, 100*ms, slo)
		l.reset()
		l.send(2000, 2*time.Second, slo)
		pass(100 * ms)
		if share := float64(l.good) / float64(l.sent); share < 0.99 {
			t.Errorf("while one of two hangs %.2f were answered in time: %v", share, l.statuses)
		}
		l.stop()
	})
}

func BenchmarkSubmit(b *testing.B) {
	v := version("m", nil)
	p := newPool(0, v, DefaultLimits, NewMetrics(obs.NewRegistry()).pool(v.ModelID, "m/0"), func(*pool) {})
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.serve(ctx, p.whole(), worker{Runner: instantly{}}) })
	for len(*p.whole().batchers.Load()) == 0 {
		time.Sleep(ms)
	}
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		p.submit(&queue.Item{Arrived: now, Deadline: now.Add(time.Minute), From: instantly{}})
		p.wake()
	}
	cancel()
	wg.Wait()
}

type instantly struct{}

func (instantly) Answer(*queue.Item, *rpc.Answer) {}

func (instantly) Begin(items []*queue.Item, ended func(error)) func() {
	var a rpc.Answer
	for _, it := range items {
		it.Answer(&a)
	}
	ended(nil)
	return func() {}
}

// Admission looks at a container that runs queries side by side, while that looks at the queue.
func TestAdmissionBesideAConcurrentContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool()
		ctx, cancel := context.WithCancel(t.Context())
		var serving, asking sync.WaitGroup
		serving.Go(func() { p.serve(ctx, p.whole(), worker{Runner: instantly{}, concurrency: 2}) })
		synctest.Wait()
		for range 4 {
			asking.Go(func() {
				for range 3000 {
					now := time.Now()
					p.submit(&queue.Item{Arrived: now, Deadline: now.Add(time.Minute), From: instantly{}})
					p.wake()
				}
			})
		}
		asking.Wait()
		synctest.Wait()
		if n := p.whole().queue.Len(); n != 0 {
			t.Errorf("%d wait for nothing", n)
		}
		cancel()
		serving.Wait()
	})
}
