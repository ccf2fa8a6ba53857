package sidecar

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// asking is an app whose queries arrive at random, in an open loop.
type asking struct {
	serving.Class
	rate float64       // queries a second
	slo  time.Duration // 0: none

	mu      sync.Mutex
	sent    int
	answers []time.Time     // when an answer came in time
	took    []time.Duration // how long each of those took
}

func (a *asking) Answer(it *queue.Item, answer *rpc.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); answer.Status == rpc.StatusOK && it.Left(now) >= 0 {
		a.answers, a.took = append(a.answers, now), append(a.took, now.Sub(it.Arrived))
	}
}

// run sends the queries of apps to a pool for a while, and waits for the answers.
func (l *load) run(lasts time.Duration, apps ...*asking) {
	var wg sync.WaitGroup
	end := time.Now().Add(lasts)
	for i, a := range apps {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for now := time.Now(); now.Before(end); now = time.Now() {
				a.sent++
				it := &queue.Item{Class: a.Class, Arrived: now, From: a}
				if a.slo > 0 {
					it.Deadline = now.Add(a.slo)
				}
				l.pool.submit(it)
				l.pool.wake()
				time.Sleep(time.Duration(random.ExpFloat64() / a.rate * 1e9))
			}
		})
	}
	wg.Wait()
	pass(2 * time.Second) // but to those that have waited for long
}

// between counts the answers that came in a time.
func (a *asking) between(start, end time.Time) (n int) {
	for _, at := range a.answers {
		if !at.Before(start) && at.Before(end) {
			n++
		}
	}
	return n
}

func (a *asking) p99() time.Duration {
	slices.Sort(a.took)
	return a.took[len(a.took)*99/100]
}

// The apps that a gateway names share what the replica can do, and those of a gateway that names none count as one.
func TestGatewaysSayWhichAppAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 2} })}})
		r.model(slow(10 * ms))
		newer, older := r.gateway(), r.gateway()
		pass(0)
		newer.askFor(serving.Class{App: "noisy"}, 0, -1, slices.Repeat([][]byte{tagged(1)}, 40)...)
		pass(0) // a batch of these runs
		quiet, plain := newer.askFor(serving.Class{App: "quiet"}, 0, -1, tagged(2)), older.ask(0, -1, tagged(3))
		start := time.Now()
		pass(time.Second)
		for _, at := range []time.Time{newer.answer(quiet).at, older.answer(plain).at} {
			if took := at.Sub(start); took > 30*ms {
				t.Errorf("an app that asks for little had its answer after %v, behind 40 of another", took)
			}
		}
		r.end()
	})
}

// Apps that both ask for more than there is get it by their weights, over any second.
func TestAppsShareByWeight(t *testing.T) {
	const capacity = 100.0 // a second
	for _, weights := range [][2]float64{{10, 1}, {4, 1}, {1, 1}} {
		for _, slo := range []time.Duration{100 * ms, 500 * ms} {
			synctest.Test(t, func(t *testing.T) {
				l := newLoad(t, serving.BatchSpec{}, linear(0, 10*ms))
				apps := []*asking{{rate: 1.5 * capacity, slo: slo}, {rate: 1.5 * capacity, slo: slo}}
				for i, a := range apps {
					a.Class = serving.Class{App: string(rune('a' + i)), Weight: weights[i]}
				}
				start := time.Now().Add(time.Second)
				l.run(11*time.Second, apps...)
				l.stop()
				for i, a := range apps {
					share := capacity * weights[i] / (weights[0] + weights[1])
					all := float64(a.between(start, start.Add(10*time.Second))) / 10
					least, most := math.Inf(1), 0.0
					for from := start; from.Before(start.Add(9 * time.Second)); from = from.Add(50 * ms) {
						n := float64(a.between(from, from.Add(time.Second)))
						least, most = min(least, n), max(most, n)
					}
					t.Logf("weights %v, objective %v: app %d had %.1f a second, between %v and %v in a second, its share is %.1f; of %d", weights, slo, i, all, least, most, share, a.sent)
					if math.Abs(all-share) > 0.1*share || least < 0.75*share-1 || most > 1.25*share+1 {
						t.Errorf("weights %v: app %d had %.1f a second, between %v and %v in a second, want %.1f", weights, i, all, least, most, share)
					}
				}
			})
		}
	}
}

// An app that asks for half of its share loses nothing to one that asks for everything.
func TestAQuietAppBesideANoisyOne(t *testing.T) {
	for _, c := range []struct {
		name   string
		models []timed
		spec   serving.BatchSpec
		rate   float64 // what the models can do
		slo    time.Duration
		noisy  time.Duration // objective of the other
		most   float64       // how much longer its answers may take
		least  float64       // of what it leaves, the other must get
	}{
		{"10 ms an input", []timed{linear(0, 10*ms)}, serving.BatchSpec{}, 100, 100 * ms, 100 * ms, 1.5, 0.95},
		{"a long objective", []timed{linear(0, 10*ms)}, serving.BatchSpec{}, 100, 500 * ms, 500 * ms, 1.5, 0.95},
		{"beside one without an objective", []timed{linear(0, 10*ms)}, serving.BatchSpec{}, 100, 100 * ms, 0, 1.5, 0.95},
		{"in batches of 1", []timed{flat(10*ms, 0.1)}, serving.BatchSpec{MaxSize: 1}, 100, 100 * ms, 100 * ms, 1.5, 0.95},
		{"four replicas", []timed{linear(0, 10*ms), linear(0, 10*ms), linear(0, 10*ms), linear(0, 10*ms)}, serving.BatchSpec{}, 400, 100 * ms, 100 * ms, 2.5, 0.95}, // alone it nearly always finds one that is idle
		{"1 ms an input", []timed{linear(0, ms)}, serving.BatchSpec{}, 1000, 50 * ms, 50 * ms, 1.5, 0.95},
		{"100 ms an input", []timed{linear(0, 100*ms)}, serving.BatchSpec{}, 10, time.Second, time.Second, 1.5, 0.95},
		// Here long batches do much more than short ones, and both give way a little.
		{"2 ms and 0.1 ms an input", []timed{linear(2*ms, ms/10)}, serving.BatchSpec{}, 9111, 50 * ms, 50 * ms, 7, 0.85},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quiet := &asking{Class: serving.Class{App: "quiet"}, rate: c.rate / 4, slo: c.slo}
				noisy := &asking{Class: serving.Class{App: "noisy"}, rate: c.rate * 1.5, slo: c.noisy}
				lasts := time.Duration(max(2000/c.rate, 5) * float64(time.Second))
				l := newLoad(t, c.spec, c.models...)
				l.run(lasts, quiet)
				alone, lost := quiet.p99(), quiet.sent-len(quiet.took)
				quiet.sent, quiet.took = 0, nil
				end := time.Now().Add(lasts)
				l.run(lasts, quiet, noisy)
				l.stop()
				settled := lasts - 2*time.Second // sizes are found by then
				rest := float64(noisy.between(end.Add(-settled), end)) / settled.Seconds()
				t.Logf("99 %% of its answers take up to %v, alone %v; %d of %d are lost, alone %d; the other has %.1f a second of %.1f", quiet.p99(), alone, quiet.sent-len(quiet.took), quiet.sent, lost, rest, c.rate*0.75)
				if quiet.sent != len(quiet.took) || float64(quiet.p99()) > c.most*float64(alone) {
					t.Errorf("%d of %d had no answer, and 99 %% took up to %v; alone up to %v", quiet.sent-len(quiet.took), quiet.sent, quiet.p99(), alone)
				}
				if rest < c.least*0.75*c.rate {
					t.Errorf("the other had %.1f a second of %.1f that are left", rest, 0.75*c.rate)
				}
			})
		})
	}
}
