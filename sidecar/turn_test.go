package sidecar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// A query to one model of a container that runs a long batch of another expires, and the
// container lives on.
func TestAModelThatWaitsForItsTurnKillsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", nil), version("b", nil)}})
		m := r.model(slow(15 * time.Second))
		m.announce(2, "b", rpc.StateReady)
		g := r.gateway()
		pass(0)
		long := g.ask(1, 30*time.Second, tagged(1))
		pass(ms)
		short := g.ask(0, 100*ms, tagged(2))
		pass(40 * time.Second)
		if a := g.answer(long); a.Status != rpc.StatusOK {
			t.Errorf("the long batch: %v %s", a.Status, a.Message)
		}
		if a := g.answer(short); a.Status != rpc.StatusExpired {
			t.Errorf("what waited for it: %v %s", a.Status, a.Message)
		}
		if r.stalled != 0 || m.dead() {
			t.Errorf("%d containers stalled, dead: %v", r.stalled, m.dead())
		}
		r.end()
	})
}

// Admission counts what waits for the other models of the container, as far as it is due earlier.
func TestAdmissionCountsTheOtherModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} }
		r := newRig(t, Config{Models: []*serving.Version{version("m", one), version("b", one), version("c", one)}})
		m := r.model(slow(10 * ms))
		m.announce(2, "b", rpc.StateReady)
		m.announce(3, "c", rpc.StateReady)
		g := r.gateway()
		pass(0)
		for range 3 { // so that all are known
			for model := range uint32(3) {
				g.ask(model, time.Second, tagged(1))
				pass(20 * ms)
			}
		}
		for range 20 { // 400 ms of work for both
			g.ask(1, 300*ms, tagged(2))
			g.ask(2, 300*ms, tagged(2))
		}
		pass(15 * ms) // the second batch runs
		urgent, behind, patient := g.ask(0, 60*ms, tagged(3)), g.ask(0, 290*ms, tagged(4)), g.ask(0, time.Second, tagged(5))
		pass(ms)
		if a := g.all(behind); len(a) != 1 || a[0].Status != rpc.StatusLate {
			t.Errorf("what cannot be in time got %+v", a)
		}
		pass(time.Second)
		for name, batch := range map[string]uint64{"what goes first": urgent, "what can wait": patient} {
			if a := g.answer(batch); a.Status != rpc.StatusOK {
				t.Errorf("%s: %v %s", name, a.Status, a.Message)
			}
		}
		r.end()
	})
}

// Models that share a container keep their objective as if each had it alone, as long as it can do what they ask
// for: a batch is formed when its turn comes, of all that waits by then.
func TestModelsThatShareAContainerAreInTime(t *testing.T) {
	for _, c := range []struct {
		models int
		rate   float64 // queries a second, to all of them
		first  float64 // the share of the first one; 0: even
		want   float64 // in time
	}{
		{1, 4000, 0, 0.99},
		{8, 4000, 0, 0.98},
		{16, 2000, 0, 0.98},
		{16, 4000, 0.8, 0.98},
		{16, 4000, 0, 0.9}, // more than it can do: 2 ms for each of 16 batches leave time for too few inputs
	} {
		t.Run(fmt.Sprintf("%d models, %v a second, %v to the first", c.models, c.rate, c.first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := share(t, c.models, c.rate, c.first); got < c.want {
					t.Errorf("%.3f were answered within the objective, want %v", got, c.want)
				}
			})
		})
	}
}

// share is how much is answered within 50 ms where models share a container that takes 2 ms for a batch and 0.1 ms
// for each input.
func share(t *testing.T, models int, rate, first float64) float64 {
	var versions []*serving.Version
	for i := range models {
		versions = append(versions, version(fmt.Sprint("m", i), nil))
	}
	r := newRig(t, Config{Models: versions})
	m, err := connect(t, r.dial.container(), hello(rpc.RoleContainer, ""))
	require.NoError(t, err)
	m.treat = func(m *model, batch uint64, in [][]byte) {
		time.Sleep(2*ms + time.Duration(len(in))*ms/10)
		echo(m, batch, in)
	}
	for i := range models {
		m.announce(uint32(i+1), fmt.Sprint("m", i), rpc.StateReady)
	}
	g := r.gateway()
	pass(ms)
	random := rand.New(rand.NewPCG(5, 6))
	asked := map[uint64]time.Time{}
	ask := func(d time.Duration) (batches []uint64) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			model := random.IntN(models)
			if random.Float64() < first {
				model = 0
			}
			b := g.ask(uint32(model), 50*ms, tagged(float64(len(asked))))
			asked[b] = time.Now()
			batches = append(batches, b)
			time.Sleep(time.Duration(random.ExpFloat64() / rate * 1e9))
		}
		return batches
	}
	ask(time.Second) // until the sizes are found
	batches := ask(2 * time.Second)
	pass(time.Second)
	inTime := 0
	for _, b := range batches {
		if a := g.answer(b); a.Status == rpc.StatusOK && a.at.Sub(asked[b]) <= 50*ms {
			inTime++
		}
	}
	r.end()
	return float64(inTime) / float64(len(batches))
}

// Of the models of a container that goes first which has a query of the highest priority, and admission knows.
func TestTurnsGoByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} }
		r := newRig(t, Config{Models: []*serving.Version{version("m", one), version("b", one)}})
		m := r.model(slow(10 * ms))
		m.announce(2, "b", rpc.StateReady)
		g := r.gateway()
		pass(0)
		for range 3 { // so that both are known
			for model := range uint32(2) {
				g.ask(model, time.Second, tagged(1))
				pass(20 * ms)
			}
		}
		low := g.askFor(serving.Class{App: "stream", Priority: 1}, 1, 400*ms, slices.Repeat([][]byte{tagged(2)}, 30)...) // 300 ms
		pass(15 * ms)                                                                                                    // the second one runs
		start := time.Now()
		high := g.askFor(serving.Class{App: "web"}, 0, 500*ms, tagged(3), tagged(3), tagged(3))
		short := g.askFor(serving.Class{App: "web"}, 0, 60*ms, tagged(4))
		pass(time.Second)
		for _, a := range append(g.all(high), g.all(short)...) {
			if took := a.at.Sub(start); a.Status != rpc.StatusOK || took > 45*ms {
				t.Errorf("one of the highest priority: %v after %v, %s", a.Status, took, a.Message)
			}
		}
		for _, a := range g.all(low) {
			if a.Status != rpc.StatusOK {
				t.Errorf("one of a lower priority: %v %s", a.Status, a.Message)
			}
		}
		r.end()
	})
}
