package sidecar

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// lies are what a container may do with a batch of 3; says is what the queries
// that suffer from it are told. One of the others may have been answered.
var lies = []struct {
	name  string
	tell  func(m *model, batch uint64, in [][]byte)
	says  string
	fair  int  // the input that is answered all the same; -1: none
	lives bool // the connection goes on
}{
	{"leaves one out", func(m *model, batch uint64, in [][]byte) {
		m.reply(batch, rpc.FlagEnd, rpc.Answer{Index: 2, Payload: in[2]})
	}, "answered 1 of the 3 inputs", 2, true},
	{"a count that is too high", func(m *model, batch uint64, in [][]byte) {
		m.conn.Send(rpc.KindReply, rpc.FlagEnd, rpc.AppendReplyHead(nil, rpc.ReplyHead{Batch: batch, Count: 3}))
	}, "REPLY", -1, false},
	{"an index beyond the batch", func(m *model, batch uint64, in [][]byte) {
		m.reply(batch, rpc.FlagEnd, rpc.Answer{Index: 3, Payload: in[0]})
	}, "3 is beyond a batch of 3", -1, false},
	{"the same input twice", func(m *model, batch uint64, in [][]byte) {
		m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: in[0]}, rpc.Answer{Payload: in[1]})
	}, "input 0 was answered before", 0, false},
	{"an unknown batch", func(m *model, batch uint64, in [][]byte) { echo(m, batch+1, in) }, "was not requested", -1, false},
	{"garbage", func(m *model, batch uint64, in [][]byte) { m.nc.Write([]byte("\x00\x00\x00\xff garbage")) }, "rpc: bad", -1, false},
	{"half a frame", func(m *model, batch uint64, in [][]byte) {
		m.nc.Write(rpc.AppendFrame(nil, rpc.KindReply, rpc.FlagEnd, make([]byte, 100))[:50])
		m.nc.Close()
	}, "unexpected EOF", -1, false},
	{"another model", func(m *model, batch uint64, in [][]byte) { m.announce(2, "other", rpc.StateReady) }, "other:1, which this sidecar does not serve", -1, false},
	{"a second time the same model", func(m *model, batch uint64, in [][]byte) { m.announce(2, "m", rpc.StateReady) }, "open one connection for each", -1, false},
	{"another input type", func(m *model, batch uint64, in [][]byte) { m.announceAs(serving.Strings, 0) }, "input type strings, and it is registered with doubles", -1, false},
	{"another input length", func(m *model, batch uint64, in [][]byte) { m.announceAs(serving.Doubles, 2) }, "input length 2, and it is registered with 1", -1, false},
}

func (m *model) announceAs(kind serving.InputType, length int) {
	a := rpc.Announcement{ID: 1, State: rpc.StateReady, InputType: kind, InputLength: length, Model: serving.ModelID{Model: "m", Version: "1"}}
	m.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, a))
}

// Whatever one container does, only the queries of its batch suffer, they hear
// why, and the next container serves on.
func TestALyingContainer(t *testing.T) {
	for _, l := range lies {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) {
					v.InputLength = 1
					v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 3}
				})}})
				liar := r.model(func(m *model, batch uint64, in [][]byte) {
					m.do(func(m *model, batch uint64, in [][]byte) { time.Sleep(10 * ms); l.tell(m, batch, in) })
					slow(10*ms)(m, batch, in)
				})
				g := r.gateway()
				g.ask(0, time.Minute, tagged(0)) // meanwhile the next three come together
				pass(5 * ms)
				batch := g.ask(0, time.Minute, tagged(1), tagged(2), tagged(3))
				pass(10 * ms)
				r.model(nil)
				others := g.ask(0, time.Minute, tagged(4), tagged(5), tagged(6), tagged(7))
				pass(time.Second)
				for i, a := range g.answers(batch, 3) {
					if i == l.fair {
						if a.Status != rpc.StatusOK {
							t.Errorf("input %d: %v %q, it was answered", i, a.Status, a.Message)
						}
					} else if a.Status != rpc.StatusContainer || !strings.Contains(string(a.Message), l.says) {
						t.Errorf("input %d: %v %q, want a container error that says %q", i, a.Status, a.Message, l.says)
					}
				}
				for i, a := range g.answers(others, 4) {
					if a.Status != rpc.StatusOK {
						t.Errorf("input %d of another batch: %v %q", i, a.Status, a.Message)
					}
				}
				if liar.dead() == l.lives {
					t.Errorf("the liar's connection lives: %v, want %v", !liar.dead(), l.lives)
				}
				liar.do(echo)
				after := g.ask(0, time.Minute, tagged(8))
				pass(time.Second)
				if a := g.answer(after); a.Status != rpc.StatusOK {
					t.Errorf("afterwards: %v %q", a.Status, a.Message)
				}
				if r.stalled != 0 {
					t.Error("Stalled was called for one that answered")
				}
				r.end()
			})
		})
	}
}

func TestAContainerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Stall: 2 * time.Second})
		m := r.model(hang)
		g, start := r.gateway(), time.Now()
		batch := g.ask(0, time.Second, tagged(1))
		pass(time.Second)
		next := g.ask(0, 10*time.Second, tagged(3))
		pass(time.Minute)
		if a := g.answer(batch); a.Status != rpc.StatusContainer || !strings.Contains(string(a.Message), "stalled") || a.at.Sub(start) != 3*time.Second {
			t.Errorf("%v %q after %v", a.Status, a.Message, a.at.Sub(start))
		}
		if a := g.answer(next); a.Status != rpc.StatusNoContainer || a.at.Sub(start) != 3*time.Second {
			t.Errorf("what waited got %v after %v", a.Status, a.at.Sub(start))
		}
		if !m.dead() || r.stalled != 1 {
			t.Errorf("the connection ended: %v; Stalled was called %d times", m.dead(), r.stalled)
		}
		r.model(nil)
		again := g.ask(0, time.Second, tagged(4))
		pass(time.Second)
		if a := g.answer(again); a.Status != rpc.StatusOK {
			t.Errorf("the next container: %v %q", a.Status, a.Message)
		}
		r.end()
	})
}

// One that hangs while it leaves is not to be kept either.
func TestAContainerThatHangsWhileItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Stall: 2 * time.Second})
		m := r.model(hang)
		g := r.gateway()
		batch := g.ask(0, time.Second, tagged(1))
		pass(10 * ms)
		m.conn.Send(rpc.KindDrain, 0, nil)
		pass(time.Minute)
		if a := g.answer(batch); a.Status != rpc.StatusContainer || !m.dead() || r.stalled != 1 {
			t.Errorf("%v %q; the connection ended: %v; Stalled was called %d times", a.Status, a.Message, m.dead(), r.stalled)
		}
		r.end()
	})
}

func TestAStreamComesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.model(func(m *model, batch uint64, in [][]byte) {
			for range 3 {
				m.reply(batch, 0, rpc.Answer{Payload: in[0], More: true})
				time.Sleep(100 * ms)
			}
			m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: in[0]})
		})
		g, start := r.gateway(), time.Now()
		batch := g.askParts(0, time.Second, tagged(1))
		pass(time.Second)
		g.answer(batch)
		for i, a := range g.replies[batch] {
			if want := time.Duration(i) * 100 * ms; a.Status != rpc.StatusOK || a.More != (i < 3) || a.at.Sub(start) != want {
				t.Errorf("part %d: %v, more %v, after %v", i, a.Status, a.More, a.at.Sub(start))
			}
		}
		if len(g.replies[batch]) != 4 {
			t.Errorf("%d parts", len(g.replies[batch]))
		}
		r.end()
	})
}

// An id that comes to mean another model must not be asked for the first.
func TestAnIDChangesItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", nil), version("n", nil)}})
		m := r.model(nil)
		g := r.gateway()
		m.announce(1, "n", rpc.StateReady)
		pass(ms)
		if g.state(0) != rpc.StateLoading || g.state(1) != rpc.StateReady {
			t.Errorf("the gateway is told %v and %v", g.state(0), g.state(1))
		}
		first, second := g.ask(0, time.Second, tagged(1)), g.ask(1, time.Second, tagged(2))
		pass(time.Second)
		if a, b := g.answer(first), g.answer(second); a.Status != rpc.StatusNoContainer || b.Status != rpc.StatusOK {
			t.Errorf("the first model: %v, the second: %v", a.Status, b.Status)
		}
		m.announce(2, "m", rpc.StateReady) // and one connection may serve both
		pass(ms)
		first, second = g.ask(0, time.Second, tagged(3)), g.ask(1, time.Second, tagged(4))
		pass(time.Second)
		if a, b := g.answer(first), g.answer(second); a.Status != rpc.StatusOK || b.Status != rpc.StatusOK || m.dead() {
			t.Errorf("the first model: %v, the second: %v", a.Status, b.Status)
		}
		r.end()
	})
}

func TestWhoMayConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{ContainerToken: []byte("secret"), GatewayToken: func() []byte { return []byte("other") }})
		for _, c := range []struct {
			to    *pipes
			hello rpc.Hello
			says  string // "": welcome
		}{
			{r.containers, hello(rpc.RoleContainer, "secret"), ""},
			{r.containers, hello(rpc.RoleContainer, "wrong"), "token"},
			{r.containers, hello(rpc.RoleContainer, ""), "token"},
			{r.containers, hello(rpc.RoleGateway, "secret"), "role 1 is not accepted"},
			{r.containers, hello(rpc.RoleSidecar, "secret"), "role 2 is not accepted"},
			{r.gateways, hello(rpc.RoleGateway, "other"), ""},
			{r.gateways, hello(rpc.RoleGateway, "secret"), "token"},
			{r.gateways, hello(rpc.RoleContainer, "other"), "role 3 is not accepted"},
		} {
			m, err := connect(t, c.to.dial(), c.hello)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("%+v: %v", c.hello, err)
			case c.says != "" && (!errors.Is(err, rpc.ErrRefused) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%+v: %v, want a refusal that says %q", c.hello, err, c.says)
			}
			_ = m
		}
		r.end()
	})
}

// A container that speaks out of turn as a gateway would, and a gateway as a
// container would, are shown the door.
func TestFramesOfTheWrongSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(nil)
		g := r.gateway()
		m.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: 1}))
		g.conn.Send(rpc.KindReply, rpc.FlagEnd, rpc.AppendReplyHead(nil, rpc.ReplyHead{Batch: 1}))
		<-m.gone
		<-g.gone
		for _, why := range []error{m.why, g.why} {
			if bye, ok := errors.AsType[*rpc.ByeError](why); !ok || !strings.Contains(bye.Reason, "not expected here") {
				t.Errorf("it heard %v", why)
			}
		}
		g = r.gateway() // the sidecar itself goes on
		g.conn.Send(rpc.KindFeedback, 0, rpc.AppendFeedback(nil, 0))
		g.conn.Send(200, 0, nil)
		pass(ms)
		if g.state(0) != rpc.StateLoading {
			t.Errorf("a new gateway is told %v", g.state(0))
		}
		g.conn.Send(rpc.KindPredict, 0, []byte{1, 2, 3})
		<-g.gone
		if bye, ok := errors.AsType[*rpc.ByeError](g.why); !ok || !strings.Contains(bye.Reason, "PREDICT") {
			t.Errorf("after half a PREDICT it heard %v", g.why)
		}
		r.end()
	})
}
