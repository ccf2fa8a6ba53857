package sidecar

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// concurrentModel starts a container that runs queries side by side.
func (r *rig) concurrentModel(concurrency uint32, treat func(*model, uint64, [][]byte), cancelled func(rpc.Cancel)) *model {
	r.t.Helper()
	h := hello(rpc.RoleContainer, "")
	h.Features |= rpc.FeatureParts
	m, err := connect(r.t, r.dial.container(), h)
	require.NoError(r.t, err)
	m.treat, m.cancelled = treat, cancelled
	m.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: 1, State: rpc.StateReady, Model: serving.ModelID{Model: "m", Version: "1"}, Concurrency: concurrency}))
	pass(0)
	return m
}

// parts answers with n parts, the first at once and the others at intervals, and then the whole.
func parts(n int, every time.Duration) func(*model, uint64, [][]byte) {
	return func(m *model, batch uint64, in [][]byte) {
		for i := range n {
			if i > 0 {
				select {
				case <-time.After(every):
				case <-m.gone:
					return
				}
			}
			m.reply(batch, 0, rpc.Answer{Payload: in[0], More: true})
		}
		m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: in[0]})
	}
}

func TestPartsPassAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.concurrentModel(2, parts(3, 10*time.Second), nil)
		g := r.gateway()
		pass(0)
		start := time.Now()
		stream := g.askParts(0, 100*ms, tagged(1))
		whole := g.ask(0, 100*ms, tagged(2))
		pass(0)
		if got := g.all(stream); len(got) != 1 || !got[0].More {
			t.Fatalf("at once came %+v", got)
		}
		pass(time.Minute)
		got := g.all(stream)
		if len(got) != 4 || got[3].More || got[3].Status != rpc.StatusOK {
			t.Fatalf("in the end there was %+v", got)
		}
		for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 20 * time.Second} {
			if at := got[i].at.Sub(start); at != want {
				t.Errorf("answer %d came after %v, not %v", i, at, want)
			}
		}
		if got := g.all(whole); len(got) != 1 || got[0].Status != rpc.StatusOK || got[0].at.Sub(start) != 20*time.Second {
			t.Errorf("who wants no parts got %+v", got)
		}
		r.end()
	})
}

// Three queries to a container that takes two: the third runs when one has ended, or was cancelled.
func TestACancelledQueryFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		var m *model
		m = r.concurrentModel(2, parts(1000, time.Second), func(c rpc.Cancel) {
			time.Sleep(20 * ms)
			m.reply(c.Batch, rpc.FlagEnd, rpc.Answer{Status: rpc.StatusCancelled, Message: []byte("cancelled")})
		})
		g := r.gateway()
		pass(0)
		first, second, third := g.askParts(0, time.Minute, tagged(1)), g.askParts(0, time.Minute, tagged(2)), g.askParts(0, time.Minute, tagged(3))
		pass(time.Second)
		if n := len(g.all(third)); len(g.all(first)) == 0 || len(g.all(second)) == 0 || n != 0 {
			t.Fatalf("the third has %d answers", n)
		}
		g.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: first}))
		pass(50 * ms)
		if a := g.answer(first); a.Status != rpc.StatusCancelled {
			t.Errorf("the cancelled one ended with %v", a.Status)
		}
		if len(g.all(third)) == 0 {
			t.Error("the place was not given to the third")
		}
		if m.dead() {
			t.Error("the container was lost")
		}
		m.conn.Send(rpc.KindDrain, 0, nil) // the container leaves; what it runs can still be cancelled
		pass(50 * ms)
		g.conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "gone")) // and all that it asked for ends
		pass(50 * ms)
		if n := r.running(); n != 0 {
			t.Errorf("%d queries of a gateway that is gone run on", n)
		}
		r.end()
	})
}

func TestAContainerThatDoesNotCancelIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.concurrentModel(rpc.AnyConcurrency, hang, nil)
		g := r.gateway()
		pass(0)
		q := g.askParts(0, 100*ms, tagged(1))
		pass(time.Second)
		g.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: q}))
		pass(9 * time.Second)
		if m.dead() {
			t.Fatal("it was lost before its time was up")
		}
		pass(2 * time.Second)
		if !m.dead() || r.stalled != 1 {
			t.Errorf("it lives on; %d stalled", r.stalled)
		}
		if a := g.answer(q); a.Status != rpc.StatusContainer {
			t.Errorf("the query ended with %v", a.Status)
		}
		r.end()
	})
}

// A stage, or a container that knows nothing of parts, cannot be concurrent.
func TestWhoCannotBeConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(nil)
		m.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: 1, State: rpc.StateReady, Model: serving.ModelID{Model: "m", Version: "1"}, Concurrency: 2}))
		if pass(0); !m.dead() {
			t.Error("a container without the feature was accepted")
		}
		r.end()
	})
}

// A container whose SDK is too old for the version says so when it connects, and not at the first query.
func TestWhoDoesNotKnowWhatTheVersionHas(t *testing.T) {
	names := &serving.Signature{Inputs: []serving.Tensor{{Name: "x", Type: serving.ElementType(serving.Float32)}}}
	for _, c := range []struct {
		model    serving.Version
		features rpc.Features
		want     string // empty: it is taken
	}{
		{serving.Version{InputType: serving.Tensors, Signature: names}, rpc.FeatureParts, "knows no signatures, and the version has one: update the container's SDK"},
		{serving.Version{InputType: serving.Tensors, Signature: names}, rpc.FeatureTensors, ""},
		{serving.Version{InputType: serving.Chat}, rpc.FeatureTensors, "knows no input type chat"}, {serving.Version{InputType: serving.Chat}, rpc.FeatureParts, ""},
	} {
		c.model.ModelID = serving.ModelID{Model: "m", Version: "1"}
		s := New(Config{Models: []*serving.Version{&c.model}}, nil, nil)
		_, err := s.poolFor(rpc.Announcement{Model: c.model.ModelID}, c.features)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v with %v: %v, want %q", c.model, c.features, err, c.want)
		}
	}
}
