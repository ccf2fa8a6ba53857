package predict

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// holds has so many queries held, of which the later have the earlier deadlines.
func (r *rig) holds(n int) []*result {
	r.Helper()
	queued := make([]*result, n)
	for i := range n {
		q := newQuery(float64(i), -1)
		q.Timeout = r.slo() - time.Duration(i)*time.Millisecond
		queued[i] = r.later(q)
	}
	r.wantQueued(n)
	return queued
}

func (r *rig) slo() time.Duration {
	a, _ := r.p.App("app")
	return a.SLO.Std()
}

func patient(a *serving.App) { a.SLO = serving.Duration(10 * time.Second) }

// A new replica gets a few questions at first, and two more for each output: the
// most urgent first.
func TestANewReplicaIsNotFlooded(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		queued := t.holds(100)
		f := t.replica("a", echoes(10*time.Millisecond), m1)
		start := time.Now()
		for _, res := range queued {
			res.wait()
			if res.Default {
				t.Errorf("got %+v", res.Prediction)
			}
		}
		perStep := map[time.Duration]int{}
		last := 100.0
		sent := f.questions()
		slices.SortStableFunc(sent, func(a, b arrival) int { // those of one moment may pass each other
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.x, a.x))
		})
		for _, q := range sent {
			perStep[q.at.Sub(start)]++
			if q.x != last-1 {
				t.Errorf("%v was sent after %v", q.x, last)
			}
			last = q.x
		}
		for i, want := range []int{firstFew, 2 * firstFew, 4 * firstFew, 8 * firstFew, 100 - 15*firstFew} {
			if n := perStep[time.Duration(i)*10*time.Millisecond]; n != want {
				t.Errorf("step %d: %d were sent, want %d", i, n, want)
			}
		}
		t.settle()
		if t.version(m1).Cold() {
			t.Error("it is still cold")
		}
	})
}

func (r *rig) version(id serving.ModelID) *dispatch.Version {
	return r.p.dispatch.Version(serving.Definition{ModelID: id})
}

// Two replicas take twice as many, also when the second comes later.
func TestEachNewReplicaTakesSome(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		t.holds(30)
		a := t.replica("a", silent, m1)
		t.wantQueued(30 - firstFew)
		b := t.replica("b", silent, m1)
		t.wantQueued(30 - 2*firstFew)
		if n := len(a.questions()) + len(b.questions()); n != 2*firstFew {
			t.Errorf("%d were sent", n)
		}
	})
}

// A replica that comes after one that has died is new again.
func TestTheNextReplicaIsNewAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		t.holds(100)
		a := t.replica("a", echoes(10*time.Millisecond), m1)
		time.Sleep(25 * time.Millisecond)
		t.stop(a)
		if n := len(a.questions()); n != 7*firstFew {
			t.Fatalf("%d were sent to the first", n)
		}
		b := t.replica("b", silent, m1)
		if n := len(b.questions()); n != firstFew {
			t.Errorf("%d were sent to the second", n)
		}
	})
}

// As long as there is room for them, arrivals go straight on; once an output has come
// and nobody is held, the start is over.
func TestTheEndOfAColdStart(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		t.holds(2)
		f := t.replica("a", func(q arrival) (rpc.Answer, time.Duration) {
			if q.x == 0 {
				return rpc.Answer{}, never
			}
			return number(q.x), 10 * time.Millisecond
		}, m1)
		for i := range 5 {
			t.later(newQuery(float64(1 + i)))
		}
		if n := len(f.questions()); n != firstFew {
			t.Errorf("%d were sent", n)
		}
		time.Sleep(20 * time.Millisecond)
		t.settle()
		if t.version(m1).Cold() || len(f.questions()) != 7 {
			t.Errorf("%d were sent, still cold: %v", len(f.questions()), t.version(m1).Cold())
		}
	})
}

// New arrivals queue by their deadlines while others are held, and only then.
func TestNewArrivalsDoNotOvertake(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		t.holds(firstFew + 2)
		f := t.replica("a", echoes(10*time.Millisecond), m1)
		time.Sleep(time.Millisecond)
		late := t.later(newQuery(100))
		urgent := newQuery(200)
		urgent.Timeout = time.Second
		soon := t.later(urgent)
		t.wantQueued(4)
		late.wait()
		soon.wait()
		var order []float64
		for _, q := range f.questions()[firstFew:] {
			order = append(order, q.x)
		}
		if want := []float64{200, 1, 0, 100}; !slices.Equal(order, want) {
			t.Errorf("sent %v, want %v", order, want)
		}
		t.settle()
		res := t.later(newQuery(300))
		if n := len(f.questions()); n != firstFew+5 {
			t.Errorf("%d questions were sent", n)
		}
		res.wait()
	})
}

// Questions whose time is up while others go out are not sent.
func TestWhatExpiresBehindOthersIsNotSent(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		t.holds(firstFew)
		f := t.replica("a", echoes(100*time.Millisecond), m1)
		q := newQuery(100)
		q.Timeout = 50 * time.Millisecond
		a, took := t.predict(q)
		t.wantDefault(a, serving.NoReplica)
		if took != 50*time.Millisecond-margin {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Second)
		if n := len(f.questions()); n != firstFew {
			t.Errorf("%d were sent", n)
		}
	})
}

// A replica that takes questions and is silent gets no more of them than it has
// room for, and another gets the rest. Those that are late free their places.
func TestASilentNewReplica(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(func(a *serving.App) { a.SLO = serving.Duration(time.Second) }, m1)
		var queued []*result
		for i := range 50 {
			queued = append(queued, t.later(newQuery(float64(i))))
		}
		time.Sleep(500 * time.Millisecond)
		f := t.replica("frozen", silent, m1)
		for i := range 50 {
			queued = append(queued, t.later(newQuery(100+float64(i))))
		}
		time.Sleep(600 * time.Millisecond) // the first are late
		t.settle()
		if n := len(f.questions()); n != 2*firstFew {
			t.Errorf("the frozen one was sent %d", n)
		}
		good := t.replica("good", echoes(10*time.Millisecond), m1)
		outputs := 0
		for _, res := range queued {
			if res.wait(); !res.Default {
				outputs++
			}
		}
		if outputs != 50-firstFew || len(good.questions()) != outputs {
			t.Errorf("%d outputs, %d questions to the good one", outputs, len(good.questions()))
		}
	})
}

// Outputs that come late say all the same that the replica works: a container whose
// first batch takes long is not held back for it.
func TestLateOutputsCount(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.later(newQuery(1))
		first := true
		t.replica("a", func(q arrival) (rpc.Answer, time.Duration) {
			if first {
				first = false
				return number(q.x), 2 * slo
			}
			return number(q.x), 0
		}, m1)
		time.Sleep(3 * slo)
		if t.version(m1).Cold() {
			t.Error("it is still cold")
		}
		a, _ := t.predict(newQuery(2))
		t.wantOutput(a, 2)
	})
}

// Replicas that refuse make nothing faster: their share stays as it is.
func TestRefusalsReleaseOneForOne(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		t.holds(100)
		f := t.replica("a", func(arrival) (rpc.Answer, time.Duration) {
			return rpc.Answer{Status: rpc.StatusFull, Message: []byte("full")}, 10 * time.Millisecond
		}, m1)
		time.Sleep(95 * time.Millisecond)
		if n := len(f.questions()); n != 10*firstFew {
			t.Errorf("%d were sent, want %d", n, 10*firstFew)
		}
		time.Sleep(time.Minute)
	})
}

// A question that cannot be sent at all takes no place.
func TestWhatCannotBeSentTakesNoPlace(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(patient, m1)
		large := t.later(newQuery(make([]float64, rpc.MinMaxFrame)...))
		t.maxFrame = rpc.MinMaxFrame
		f := t.replica("a", silent, m1)
		large.wait()
		t.wantDefault(large.Prediction, serving.ContainerError)
		for i := range firstFew {
			t.later(newQuery(float64(i)))
		}
		if n := len(f.questions()); n != firstFew {
			t.Errorf("%d were sent", n)
		}
	})
}

// Whatever comes and goes, the path of a query is the direct one in the end, and
// many at once get through a cold start in time.
func TestAColdStartUnderLoad(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(func(a *serving.App) { a.ColdStart = serving.Duration(5 * time.Second) }, m1)
		var mu sync.Mutex
		outputs, defaults := 0, 0
		var all sync.WaitGroup
		for g := range 40 {
			all.Go(func() {
				for i := range 300 {
					a, _ := t.predict(newQuery(float64(g), float64(i)))
					mu.Lock()
					if a.Default {
						defaults++
					} else {
						outputs++
					}
					mu.Unlock()
				}
			})
		}
		time.Sleep(2 * time.Second)
		t.wantQueued(40)
		t.replica("a", echoes(5*time.Millisecond), m1)
		all.Wait()
		if defaults > 0 || outputs != 40*300 {
			t.Errorf("%d outputs, %d defaults", outputs, defaults)
		}
		if t.version(m1).Cold() {
			t.Error("it is still cold")
		}
	})
}
