package sidecar

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"topsail/rpc"
	v1 "topsail/rpc/v1"
	"topsail/rpc/v1/v1test"
	"topsail/serving"
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
		v.Container = serving.ContainerSpec{Protocol: "v1", Addr: c.Addr(), Connections: connections}
	})}}), c
}

// eventually waits for something that other goroutines bring about.
func eventually(t *testing.T, what string, good func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !good() {
		if time.Now().After(deadline) {
			t.Fatalf("within 10s it did not come about that %s", what)
		}
		time.Sleep(ms)
	}
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
	eventually(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	eventually(t, "all connections are open", func() bool {
		return r.scraped(`topsail_sidecar_containers_ready{model="m",replica="m/0",version="1"} 3`)
	})
	for i := range 600 {
		g.ask(0, -1, tagged(float64(i)))
	}
	eventually(t, "every query is answered", func() bool { return g.unanswered() == 0 })
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
			eventually(t, "the model is ready", ready)
			container.Misbehave(c.fault)
			eventually(t, "a query is told what the container did", func() bool {
				var asked []uint64
				for i := range 20 {
					asked = append(asked, g.ask(0, 30*ms, tagged(float64(i))))
				}
				eventually(t, "every query is answered", func() bool { return g.unanswered() == 0 })
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
			eventually(t, "it is dialled again, and serves", func() bool {
				batch := g.ask(0, time.Second, tagged(1000))
				eventually(t, "a query is answered", func() bool { return g.unanswered() == 0 })
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
	eventually(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	two := rpc.AppendInput(nil, serving.Input{Type: serving.Doubles, Data: make([]byte, 16)})
	for range 20 {
		batch := g.ask(0, -1, tagged(1), two, tagged(2))
		eventually(t, "the batch is answered", func() bool { return g.unanswered() == 0 })
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

// A container that is not there yet is dialled until it is; stopping ends that.
func TestV1WithoutAContainer(t *testing.T) {
	r := newSocketRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) {
		v.Container = serving.ContainerSpec{Protocol: "v1", Addr: "127.0.0.1:1"}
	})}})
	g := r.gateway()
	batch := g.ask(0, time.Second, tagged(1))
	eventually(t, "the query is answered", func() bool { return g.unanswered() == 0 })
	if a := g.answer(batch); a.Status != rpc.StatusNoContainer {
		t.Errorf("%v %q", a.Status, a.Message)
	}
	start := time.Now()
	r.end()
	if took := time.Since(start); took > 4*time.Second { // a dial may take 5 s
		t.Errorf("it stopped after %v", took)
	}
}
