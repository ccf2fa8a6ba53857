package sidecar

import (
	"encoding/binary"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/rpc/v1/v1test"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// firsts answers each vector of doubles with its first element.
func firsts(b v1.Batch) []float64 {
	out := make([]float64, len(b.Inputs))
	for i, in := range b.Inputs {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(in))
	}
	return out
}

func newV1Rig(t *testing.T, predict func(v1.Batch) []float64, connections int, stall time.Duration) (*rig, *v1test.Container) {
	c := v1test.Start(t, predict)
	return newSocketRig(t, Config{Stall: stall, Models: []*serving.Version{version("m", func(v *serving.Version) {
		v.InputLength = 1
		v.Container = serving.Container{Protocol: "v1", Addr: c.Addr(), Connections: connections}
	})}}), c
}

func TestV1SeveralConnections(t *testing.T) {
	const connections = 3
	var entered sync.WaitGroup
	entered.Add(connections)
	var once [connections]sync.Once
	next := make(chan int, connections)
	for i := range connections {
		next <- i
	}
	r, _ := newV1Rig(t, func(b v1.Batch) []float64 {
		select {
		case i := <-next: // the first batches wait for each other
			once[i].Do(entered.Done)
			entered.Wait()
		default:
		}
		return firsts(b)
	}, connections, 0)
	g := r.gateway()
	wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	wait.Until(t, "all connections are open", func() bool {
		return r.scraped(`topsail_sidecar_containers_ready{model="m",replica="m/0",version="1"} 3`)
	})
	for i := range 600 {
		g.ask(0, -1, tagged(float64(i)))
	}
	wait.Until(t, "every query is answered", func() bool { return g.unanswered() == 0 })
	if got := g.statuses(); got[rpc.StatusOK] != 600 {
		t.Errorf("%v", got)
	}
}

func TestV1AContainerThatMisbehaves(t *testing.T) {
	for name, c := range map[string]struct {
		fault v1test.Fault
		says  string
	}{
		"closes early":     {v1test.CloseEarly, "closed the connection"},
		"stalls":           {v1test.Stall, "stalled"},
		"short reply":      {v1test.ShortReply, "reply bytes"},
		"too many outputs": {v1test.Surplus, "more than one output per input"},
		"garbage":          {v1test.Garbage, "version 1 container at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stall := time.Duration(0)
			if c.fault == v1test.Stall {
				stall = 20 * ms // else it would do for what is only late
			}
			r, container := newV1Rig(t, firsts, 2, stall)
			g := r.gateway()
			ready := func() bool { return g.state(0) == rpc.StateReady }
			wait.Until(t, "the model is ready", ready)
			container.Misbehave(c.fault)
			wait.Until(t, "a query is told what the container did", func() bool {
				var asked []uint64
				for i := range 20 {
					asked = append(asked, g.ask(0, 30*ms, tagged(float64(i))))
				}
				wait.Until(t, "every query is answered", func() bool { return g.unanswered() == 0 })
				told := 0
				for _, batch := range asked {
					switch a := g.answer(batch); a.Status {
					case rpc.StatusOK:
						t.Error("a query was answered by a container that lied")
					case rpc.StatusContainer:
						if told++; !strings.Contains(string(a.Message), c.says) {
							t.Errorf("a query is told %q, want %q", a.Message, c.says)
						}
					}
				}
				return told > 0
			})
			container.Misbehave(v1test.None)
			wait.Until(t, "it is dialled again, and serves", func() bool {
				batch := g.ask(0, time.Second, tagged(1000))
				wait.Until(t, "a query is answered", func() bool { return g.unanswered() == 0 })
				return g.answer(batch).Status == rpc.StatusOK
			})
		})
	}
}

// An input of the wrong length is refused by itself: it costs neither the
// connection nor the answers of others.
func TestV1AnInputOfTheWrongLength(t *testing.T) {
	r, _ := newV1Rig(t, firsts, 1, 0)
	g := r.gateway()
	wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	two := rpc.AppendInput(nil, serving.Input{Type: serving.Doubles, Data: make([]byte, 16)})
	for range 20 {
		batch := g.ask(0, -1, tagged(1), two, tagged(2))
		wait.Until(t, "the batch is answered", func() bool { return g.unanswered() == 0 })
		for i, a := range g.answers(batch, 3) {
			want := rpc.StatusOK
			if i == 1 {
				want = rpc.StatusBadInput
			}
			if a.Status != want {
				t.Fatalf("input %d: %v %q, want %v", i, a.Status, a.Message, want)
			}
		}
	}
}

// A container that was started for the replica ends with it, and nobody else's does.
func TestV1Shutdown(t *testing.T) {
	for name, c := range map[string]struct {
		owns bool
		want int
	}{"its own": {true, 2}, "another's": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			container := v1test.Start(t, firsts)
			r := newSocketRig(t, Config{OwnsV1: c.owns, Models: []*serving.Version{listening(container, 2)}})
			g := r.gateway()
			wait.Until(t, "all connections serve", func() bool {
				return r.scraped(`topsail_sidecar_containers_ready{model="m",replica="m/0",version="1"} 2`)
			})
			batch := g.ask(0, -1, tagged(1))
			wait.Until(t, "the query is answered", func() bool { return g.unanswered() == 0 })
			if a := g.answer(batch); a.Status != rpc.StatusOK {
				t.Errorf("%v %q", a.Status, a.Message)
			}
			r.end()
			wait.Until(t, "the connections are closed", func() bool { return container.Connections() == 0 })
			if got := container.Shutdowns(); got != c.want {
				t.Errorf("it was asked to end on %d connections, want %d", got, c.want)
			}
		})
	}
}

func listening(c *v1test.Container, connections int) *serving.Version {
	return version("m", func(v *serving.Version) {
		v.InputLength = 1
		v.Container = serving.Container{Protocol: "v1", Addr: c.Addr(), Connections: connections}
	})
}

// A container that dies while nothing is asked is missed before the next query.
func TestV1AnIdleContainerThatDies(t *testing.T) {
	r, container := newV1Rig(t, firsts, 2, 0)
	g := r.gateway()
	wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	container.End()
	wait.Until(t, "the model is not ready", func() bool { return g.state(0) == rpc.StateLoading })
}

// What forwards a port takes connections that nothing is behind.
func TestV1APortThatIsOnlyForwarded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	var taken atomic.Int32
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			nc.Close()
			taken.Add(1)
		}
	}()
	r := newSocketRig(t, Config{OwnsV1: true, Models: []*serving.Version{version("m", func(v *serving.Version) {
		v.Container = serving.Container{Protocol: "v1", Addr: ln.Addr().String()}
	})}})
	g := r.gateway()
	wait.Until(t, "it was dialled three times", func() bool {
		if g.state(0) == rpc.StateReady {
			t.Fatal("it is ready without a container")
		}
		return taken.Load() >= 3
	})
}

// A container of the replica's own that hangs is started anew.
func TestV1AContainerOfItsOwnThatHangs(t *testing.T) {
	container := v1test.Start(t, firsts)
	r, g := hanging(t, container)
	container.Misbehave(v1test.None)
	container.Break()
	wait.Until(t, "the one in its place serves", func() bool { return g.state(0) == rpc.StateReady })
	r.end()
	if r.stalled != 1 {
		t.Errorf("it was to be started anew %d times, want once", r.stalled)
	}
}

// hanging is a replica whose own container hangs, and whose end it waits for.
func hanging(t *testing.T, container *v1test.Container) (*rig, *gateway) {
	r := newSocketRig(t, Config{OwnsV1: true, Stall: 20 * ms, Models: []*serving.Version{listening(container, 1)}})
	g := r.gateway()
	wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	container.Misbehave(v1test.Stall)
	g.ask(0, 30*ms, tagged(1))
	wait.Until(t, "it is given up", func() bool { return g.state(0) == rpc.StateLoading })
	wait.Until(t, "its end is waited for", func() bool { return container.Connections() == 1 })
	return r, g
}

// A batch is filled up with copies of an input, which make no answers.
func TestV1Padding(t *testing.T) {
	sizes := make(chan int, 10)
	container := v1test.Start(t, func(b v1.Batch) []float64 {
		sizes <- len(b.Inputs)
		return firsts(b)
	})
	model := listening(container, 1)
	model.Batch = serving.BatchSpec{Strategy: "fixed", MaxSize: 8, Pad: true}
	r := newSocketRig(t, Config{Models: []*serving.Version{model}})
	g := r.gateway()
	wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	batch := g.ask(0, -1, tagged(7))
	wait.Until(t, "the query is answered", func() bool { return g.unanswered() == 0 })
	if a := g.answer(batch); a.Status != rpc.StatusOK {
		t.Errorf("%v %q", a.Status, a.Message)
	}
	if got := <-sizes; got != 8 {
		t.Errorf("a batch of %d, want 8", got)
	}
	if want := `topsail_sidecar_answers_total{model="m",replica="m/0",status="ok",version="1"} 1`; !r.scraped(want) {
		t.Errorf("the metrics do not have %s", want)
	}
}

// A container that is not there yet is dialled until it is; stopping ends that.
func TestV1WithoutAContainer(t *testing.T) {
	r := newSocketRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) {
		v.Container = serving.Container{Protocol: "v1", Addr: "127.0.0.1:1"}
	})}})
	g := r.gateway()
	batch := g.ask(0, time.Second, tagged(1))
	wait.Until(t, "the query is answered", func() bool { return g.unanswered() == 0 })
	if a := g.answer(batch); a.Status != rpc.StatusNoContainer {
		t.Errorf("%v %q", a.Status, a.Message)
	}
	r.end()
}
