package predict

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// TestComingsAndGoings is replicas that come, drain and die at random, now and then
// none, under queries of several apps, cancelled ones among them. Each is answered by
// its own deadline with its own answer, and in the end nothing is held, open or cold.
func TestComingsAndGoings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if t.Failed() {
			return // the bubble fails t, and rapid would look for less with which it fails too
		}
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 40).Draw(rt, "steps")
		bubble(t, func(t *rig) {
			defer func() {
				if t.TB.Failed() {
					t.Logf("the steps were %+v", steps)
				}
			}()
			b := t.wakes(nil)
			fast, slow := newApp("app", "m"), newApp("slow", "m")
			slow.ColdStart = serving.Duration(time.Second)
			t.set(newCatalog([]*serving.App{fast, slow}, newModel(m1)))
			var replicas []*fake
			var all sync.WaitGroup
			for i, s := range steps {
				time.Sleep(s.wait)
				switch {
				case s.come:
					replicas = append(replicas, t.replica(fmt.Sprint(i), moody(i), m1))
				case len(replicas) > 0 && s.which%3 == 0:
					t.stop(replicas[0])
					replicas = replicas[1:]
				case len(replicas) > 0 && s.which%3 == 1:
					replicas[0].announce([]rpc.State{rpc.StateDraining, rpc.StateReady, rpc.StateLoading}[s.which%9/3])
				}
				for j := range s.queries {
					all.Go(func() { t.askInTime(float64(i), float64(j%7), j) })
				}
			}
			all.Wait()
			time.Sleep(time.Second + orphanAfter) // those of cancelled queries are given up
			t.wantQueued(0)
			for _, f := range replicas {
				t.stop(f)
			}
			t.replica("last", echoes(0), m1)
			for i := range 2 {
				a, _ := t.predict(newQuery(float64(1000 + i)))
				t.wantOutput(a, float64(1000+i))
			}
			time.Sleep(time.Minute) // all outputs that still come have come
			if v := t.version(m1); v.Cold() || v.Released() != 0 || t.p.dispatch.QueuedBytes() != 0 {
				t.Errorf("in the end cold is %v, %d in flight, %d bytes held", v.Cold(), v.Released(), t.p.dispatch.QueuedBytes())
			}
			if n := len(b.times(m1)); n > 1+int(time.Since(t.began)/wakeEvery) {
				t.Errorf("%d wakes in %v", n, time.Since(t.began))
			}
		})
	})
}

// step is what happens next.
type step struct {
	wait    time.Duration
	come    bool
	which   int
	queries int
}

func drawStep(t *rapid.T) step {
	return step{
		wait:    time.Duration(rapid.IntRange(0, 150).Draw(t, "wait")) * time.Millisecond,
		come:    rapid.IntRange(0, 2).Draw(t, "come") == 0,
		which:   rapid.IntRange(0, 8).Draw(t, "which"),
		queries: rapid.IntRange(0, 20).Draw(t, "queries"),
	}
}

// moody is a replica that answers well for the most part.
func moody(seed int) behaviour {
	var n atomic.Int64
	return func(q arrival) (rpc.Answer, time.Duration) {
		after := time.Duration(int(q.x*7)%40) * time.Millisecond
		switch (seed + int(n.Add(1))) % 11 {
		case 0:
			return rpc.Answer{Status: rpc.StatusDraining, Message: []byte("stopping")}, after
		case 1:
			return rpc.Answer{}, never
		case 2:
			return rpc.Answer{Status: rpc.StatusContainer, Message: []byte("it died")}, after
		}
		return number(q.x), after
	}
}

// askInTime asks as the kind says, and checks the answer and its time.
func (r *rig) askInTime(x, y float64, kind int) {
	q := newQuery(x, y)
	limit := slo
	q.NoCache = kind%5 == 0
	if kind%3 == 0 {
		q.App, limit = "slow", time.Second
	}
	if kind%4 == 0 {
		q.Timeout = slo / 2
		limit = min(limit, q.Timeout)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if kind%13 == 0 {
		time.AfterFunc(30*time.Millisecond, cancel)
	}
	a, err := one(ctx, r.p, q)
	switch {
	case err != nil && ctx.Err() == nil:
		r.Errorf("predict: %v", err)
	case time.Since(q.Received) > limit:
		r.Errorf("an answer took %v of %v", time.Since(q.Received), limit)
	case err == nil && !a.Default && string(a.Output) != jsonOf(math.Float64frombits(binary.LittleEndian.Uint64(q.Input.Data))):
		r.Errorf("the answer to %v is %s", x, a.Output)
	}
}

// TestRacesOfHoldingAndReleasing is in real time: whatever the interleaving of
// arrivals and of a replica that comes and goes, no query is forgotten.
func TestRacesOfHoldingAndReleasing(t *testing.T) {
	r, stop := newRig(t, func() {})
	defer stop()
	f := r.replica("a", echoes(0), m1)
	r.serves(func(a *serving.App) { a.SLO = serving.Duration(30 * time.Second) }, m1)
	r.ready(m1, 1)
	var asking atomic.Bool
	asking.Store(true)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := 0; asking.Load(); i++ {
				a, err := one(t.Context(), r.p, newQuery(float64(i/2), float64(g/2))) // pairs ask the same
				if err != nil || a.Default || string(a.Output) != jsonOf(float64(i/2)) {
					t.Errorf("question %d: %+v, %v", i, a, err)
					return
				}
			}
		})
	}
	await := func(queued bool) {
		for r.p.dispatch.Queued() > 0 != queued && !t.Failed() {
			runtime.Gosched()
		}
	}
	for range 200 {
		f.announce(rpc.StateLoading)
		await(true)
		f.announce(rpc.StateReady)
		await(false)
	}
	asking.Store(false)
	all.Wait()
	if n := r.p.dispatch.Queued(); n != 0 {
		t.Errorf("%d are still held", n)
	}
}
