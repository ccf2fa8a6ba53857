package sidecar

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func TestDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 1} })}})
		r.model(slow(100 * ms))
		g := r.gateway()
		taken := g.ask(0, -1, tagged(1), tagged(2), tagged(3))
		pass(50 * ms)
		start := time.Now()
		r.stop()
		synctest.Wait()
		if g.state(0) != rpc.StateDraining {
			t.Errorf("the gateway is told %v", g.state(0))
		}
		refused := g.ask(0, time.Second, tagged(4))
		synctest.Wait()
		if a := g.answer(refused); a.Status != rpc.StatusDraining || !a.at.Equal(start) {
			t.Errorf("a new query got %v after %v", a.Status, a.at.Sub(start))
		}
		if r.gateways.dial() != nil || r.containers.dial() != nil {
			t.Error("a stopping sidecar still takes connections")
		}
		<-r.done
		if took := time.Since(start); took < 250*ms || took > 260*ms {
			t.Errorf("it stopped after %v, its last answer was due after 250ms", took)
		}
		<-g.gone // the answers are out before the connection ends
		for i, a := range g.answers(taken, 3) {
			if a.Status != rpc.StatusOK {
				t.Errorf("input %d of those taken got %v %q", i, a.Status, a.Message)
			}
		}
	})
}

// The last answer must be out before the sidecar hangs up, every time.
func TestDrainingLosesNoAnswer(t *testing.T) {
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			r.model(slow(2 * ms)) // answers just as the sidecar looks whether it may go
			g := r.gateway()
			batch := g.ask(0, -1, tagged(1), tagged(2))
			synctest.Wait()
			r.end()
			<-g.gone
			for _, a := range g.answers(batch, 2) {
				if a.Status != rpc.StatusOK {
					t.Errorf("%v %q", a.Status, a.Message)
				}
			}
		})
	}
}

// Answers in parts end, however long they take, while what waits for a place does not.
func TestDrainingWaitsForParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.concurrentModel(1, parts(60, time.Second), nil)
		g := r.gateway()
		pass(0)
		stream := g.askParts(0, -1, tagged(1))
		pass(time.Second)
		start := time.Now()
		r.end()
		if took := time.Since(start); took < 57*time.Second || took > 59*time.Second {
			t.Errorf("it stopped after %v", took)
		}
		<-g.gone
		if got := g.all(stream); len(got) != 61 || got[60].More || got[60].Status != rpc.StatusOK {
			t.Errorf("%d entries came", len(got))
		}
	})
}

// A stream whose gateway has gone is cancelled, and holds nothing up.
func TestDrainingWithoutAGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		var m *model
		m = r.concurrentModel(1, parts(600, time.Second), func(c rpc.Cancel) {
			m.reply(c.Batch, rpc.FlagEnd, rpc.Answer{Status: rpc.StatusCancelled})
		})
		nc := r.dial.gateway()
		g := newGateway(t, nc)
		pass(0)
		g.askParts(0, -1, tagged(1))
		pass(time.Second)
		start := time.Now()
		r.stop()
		pass(20 * time.Second)
		nc.Close()
		<-r.done
		if took := time.Since(start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("it stopped after %v", took)
		}
	})
}

func TestDrainingGivesUpOnAHungContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Drain: 3 * time.Second, Stall: time.Minute})
		r.model(hang)
		g := r.gateway()
		batch := g.ask(0, -1, tagged(1))
		pass(50 * ms)
		start := time.Now()
		r.end()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it stopped after %v", took)
		}
		<-g.gone
		if a := g.answer(batch); a.Status != rpc.StatusContainer {
			t.Errorf("%v %q", a.Status, a.Message)
		}
	})
}

// A sidecar that has no container, or peers that never said HELLO, stops as well,
// and takes all its goroutines with it: a bubble ends only when none is left.
func TestStoppingWithHalfOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.gateways.dial()
		r.containers.dial()
		g := r.gateway()
		m := r.model(nil)
		synctest.Wait()
		start := time.Now()
		r.end()
		if took := time.Since(start); took > 10*ms {
			t.Errorf("it stopped after %v", took)
		}
		<-g.gone
		<-m.gone
	})
}

func TestStoppingBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.end()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := New(Config{Replica: "m/1", Models: []*serving.Version{version("m", nil)}}, r.metrics, discard())
		if err := s.Run(ctx, newPipes(), newPipes()); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}
