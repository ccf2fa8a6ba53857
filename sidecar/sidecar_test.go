package sidecar

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

func TestAQueryIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.model(nil)
		g := r.gateway()
		one := g.ask(0, time.Second, tagged(1))
		many := g.ask(0, -1, tagged(2), tagged(3), tagged(4))
		pass(10 * ms)
		if a := g.answer(one); a.Status != rpc.StatusOK {
			t.Errorf("%v %q", a.Status, a.Message)
		}
		for _, a := range g.answers(many, 3) {
			if a.Status != rpc.StatusOK {
				t.Errorf("%v %q", a.Status, a.Message)
			}
		}
		r.end()
	})
}

func TestAnUnknownModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.model(nil)
		g := r.gateway()
		batch := g.ask(7, time.Second, tagged(1), tagged(2))
		known := g.ask(0, time.Second, tagged(3))
		pass(10 * ms)
		for _, a := range g.answers(batch, 2) {
			if a.Status != rpc.StatusUnknownModel || len(a.Message) == 0 {
				t.Errorf("%v %q", a.Status, a.Message)
			}
		}
		if a := g.answer(known); a.Status != rpc.StatusOK {
			t.Errorf("after it: %v %q", a.Status, a.Message)
		}
		r.end()
	})
}

func TestWithoutAContainerQueriesAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		g := r.gateway()
		check := func(why string) {
			t.Helper()
			pass(ms)
			for _, budget := range []time.Duration{time.Second, -1} {
				batch, start := g.ask(0, budget, tagged(1)), time.Now()
				synctest.Wait()
				if a := g.answer(batch); a.Status != rpc.StatusNoContainer || !a.at.Equal(start) {
					t.Errorf("%s: %v after %v", why, a.Status, a.at.Sub(start))
				}
			}
			if g.state(0) != rpc.StateLoading {
				t.Errorf("%s: the gateway is told %v", why, g.state(0))
			}
		}
		check("no container has come yet")
		m, err := connect(t, r.containers.dial(), hello(rpc.RoleContainer, ""))
		require.NoError(t, err)
		check("it has announced nothing")
		m.announce(1, "m", rpc.StateLoading)
		check("it is loading")
		m.announce(1, "m", rpc.StateReady)
		pass(ms)
		if batch := g.ask(0, time.Second, tagged(2)); g.state(0) != rpc.StateReady {
			t.Errorf("it is ready, and the gateway is told %v", g.state(0))
		} else if pass(ms); g.answer(batch).Status != rpc.StatusOK {
			t.Errorf("it is ready: %v", g.answer(batch).Status)
		}
		m.announce(1, "m", rpc.StateGone)
		check("it has withdrawn the model")
		m.announce(1, "m", rpc.StateReady)
		pass(ms)
		m.nc.Close()
		check("it is gone")
		r.end()
	})
}

func TestContainersShareTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 2} })}})
		models := []*model{r.model(slow(10 * ms)), r.model(slow(10 * ms)), r.model(slow(10 * ms))}
		g, start := r.gateway(), time.Now()
		var inputs [][]byte
		for i := range 60 {
			inputs = append(inputs, tagged(float64(i)))
		}
		batch := g.ask(0, -1, inputs...)
		pass(time.Second)
		for _, a := range g.answers(batch, 60) {
			if a.Status != rpc.StatusOK || a.at.Sub(start) > 120*ms {
				t.Errorf("%v after %v", a.Status, a.at.Sub(start))
			}
		}
		for _, m := range models {
			if batches, n := m.seen(); batches < 10 || n < 18 {
				t.Errorf("a container got %d batches with %d inputs of 60", batches, n)
			}
		}
		r.end()
	})
}

// With the last container its queue goes: another replica may still be in time.
func TestWhatWaitsIsRefusedWhenTheLastContainerGoes(t *testing.T) {
	for name, leave := range map[string]func(*model){
		"it dies":      func(m *model) { m.nc.Close() },
		"it drains":    func(m *model) { m.conn.Send(rpc.KindDrain, 0, nil) },
		"it withdraws": func(m *model) { m.announce(1, "m", rpc.StateGone) },
		"it reloads":   func(m *model) { m.announce(1, "m", rpc.StateLoading) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch.MaxSize = 1 })}})
			m := r.model(slow(time.Second))
			g := r.gateway()
			running := g.ask(0, -1, tagged(1))
			synctest.Wait()
			waiting := g.ask(0, -1, tagged(2), tagged(3))
			pass(100 * ms)
			start := time.Now()
			leave(m)
			synctest.Wait()
			for _, a := range g.answers(waiting, 2) {
				if a.Status != rpc.StatusNoContainer || !a.at.Equal(start) {
					t.Errorf("%s: what waited got %v after %v", name, a.Status, a.at.Sub(start))
				}
			}
			if g.state(0) != rpc.StateLoading {
				t.Errorf("%s: the gateway is told %v", name, g.state(0))
			}
			pass(time.Second)
			want := rpc.StatusOK // the batch in hand is finished
			if name == "it dies" {
				want = rpc.StatusContainer
			}
			if a := g.answer(running); a.Status != want {
				t.Errorf("%s: what ran got %v %q, want %v", name, a.Status, a.Message, want)
			}
			if batches, _ := m.seen(); batches != 1 {
				t.Errorf("%s: it got %d batches", name, batches)
			}
			r.end()
		})
	}
}

// While other containers are there, what waits is theirs.
func TestOneOfTwoContainersGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} })}})
		a, b := r.model(slow(100*ms)), r.model(slow(100*ms))
		g := r.gateway()
		batch := g.ask(0, -1, tagged(1), tagged(2), tagged(3), tagged(4), tagged(5))
		pass(50 * ms)
		a.conn.Send(rpc.KindDrain, 0, nil)
		pass(time.Second)
		for i, got := range g.answers(batch, 5) {
			if got.Status != rpc.StatusOK {
				t.Errorf("input %d: %v %q", i, got.Status, got.Message)
			}
		}
		if _, n := a.seen(); n != 1 {
			t.Errorf("the container that drained got %d inputs", n)
		}
		if _, n := b.seen(); n != 4 {
			t.Errorf("the other got %d inputs", n)
		}
		r.end()
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Limits: queue.Limits{Items: 3, Bytes: 1 << 20}})
		r.model(slow(time.Second))
		g := r.gateway()
		g.ask(0, -1, tagged(0))
		synctest.Wait()
		batch := g.ask(0, -1, tagged(1), tagged(2), tagged(3), tagged(4))
		synctest.Wait()
		if want := map[rpc.Status]int{rpc.StatusFull: 1}; !maps.Equal(g.statuses(), want) {
			t.Errorf("at once: %v, want %v", g.statuses(), want)
		}
		pass(5 * time.Second)
		if got := g.answers(batch, 4); got[3].Status != rpc.StatusFull || got[2].Status != rpc.StatusOK {
			t.Errorf("%v, then %v", got[2].Status, got[3].Status)
		}
		r.end()
	})
}

func TestReportsOnReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} })}})
		r.model(slow(100 * ms))
		g := r.gateway()
		for range 3 {
			g.ask(0, -1, tagged(1)) // so that the model is known
			pass(200 * ms)
		}
		batch := g.ask(0, -1, tagged(1), tagged(2), tagged(3), tagged(4))
		pass(time.Second)
		got := g.answers(batch, 4)
		// When the first is answered, the second has not begun.
		if first := got[0]; first.Queue != 3 || first.Wait < 290*ms || first.Wait > 310*ms {
			t.Errorf("the first reply says that %d wait, for %v", first.Queue, first.Wait)
		}
		if last := got[3]; last.Queue != 0 || last.Wait > ms {
			t.Errorf("the last reply says that %d wait, for %v", last.Queue, last.Wait)
		}
		r.end()
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} })}})
		m := r.model(slow(100 * ms))
		g, other := r.gateway(), r.gateway()
		others := other.ask(0, -1, tagged(1), tagged(2)) // the same name as the next
		batch := g.ask(0, -1, tagged(3), tagged(4), tagged(5))
		all := g.ask(0, -1, tagged(6), tagged(7))
		synctest.Wait()
		cancel := func(c rpc.Cancel) { g.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, c)) }
		cancel(rpc.Cancel{Batch: batch, Index: 1})
		cancel(rpc.Cancel{Batch: all, Index: rpc.CancelAll})
		cancel(rpc.Cancel{Batch: 99, Index: rpc.CancelAll})
		cancel(rpc.Cancel{Batch: batch, Index: 99})
		start := time.Now()
		pass(time.Second)
		got := g.answers(batch, 3)
		for i, want := range []rpc.Status{rpc.StatusOK, rpc.StatusCancelled, rpc.StatusOK} {
			if got[i].Status != want {
				t.Errorf("input %d: %v, want %v", i, got[i].Status, want)
			}
		}
		for _, a := range g.answers(all, 2) {
			if a.Status != rpc.StatusCancelled || !a.at.Equal(start) {
				t.Errorf("%v after %v", a.Status, a.at.Sub(start))
			}
		}
		for _, a := range other.answers(others, 2) {
			if a.Status != rpc.StatusOK {
				t.Errorf("the other gateway's input got %v", a.Status)
			}
		}
		if _, n := m.seen(); n != 4 {
			t.Errorf("the container got %d inputs, want 4", n)
		}
		r.end()
	})
}

// What a gateway that is gone still has waiting is of use to nobody.
func TestTheQueriesOfALostGatewayAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} })}})
		m := r.model(slow(100 * ms))
		lost, g := r.gateway(), r.gateway()
		lost.ask(0, -1, tagged(1), tagged(2), tagged(3))
		pass(ms)
		batch := g.ask(0, -1, tagged(4))
		pass(ms)
		lost.conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "the end"))
		pass(time.Second)
		if a := g.answer(batch); a.Status != rpc.StatusOK {
			t.Errorf("the other gateway's query got %v", a.Status)
		}
		if _, n := m.seen(); n != 2 {
			t.Errorf("the container got %d inputs, want the running one and the other gateway's", n)
		}
		r.end()
	})
}

// An output above what the gateway accepts cannot be sent; its query must still
// be answered.
func TestAnOutputTooLargeForTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.model(func(m *model, batch uint64, in [][]byte) {
			huge := rpc.AppendPayload(nil, serving.Text(strings.Repeat("x", rpc.MinMaxFrame)))
			m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: huge})
		})
		small := hello(rpc.RoleGateway, "")
		small.MaxFrame, small.Features = rpc.MinMaxFrame, 0
		conn, err := rpc.Connect(t.Context(), r.gateways.dial(), small)
		require.NoError(t, err)
		var got []rpc.Answer
		go conn.Run(t.Context(), func(f rpc.Frame) error {
			if f.Kind != rpc.KindReply {
				return nil
			}
			in, err := rpc.ParseReply(f)
			var a rpc.Answer
			for in.Next(&a) {
				a.Message = slices.Clone(a.Message)
				got = append(got, a)
			}
			return err
		})
		b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: 1, Count: 1})
		conn.Send(rpc.KindPredict, 0, rpc.AppendAsk(b, &rpc.Ask{Budget: time.Second, Payload: tagged(1)}))
		pass(time.Second)
		if len(got) != 1 || got[0].Status != rpc.StatusContainer || got[0].More || !strings.Contains(string(got[0].Message), "larger than the gateway accepts") {
			t.Errorf("answers %+v", got)
		}
		r.end()
	})
}
