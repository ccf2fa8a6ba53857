package sidecar

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const ms = time.Millisecond

// rig is a sidecar with everything around it.
type rig struct {
	t          *testing.T
	registry   *obs.Registry
	metrics    *Metrics
	gateways   *pipes // in a bubble, and else nil
	containers *pipes
	dial       struct{ gateway, container func() net.Conn }
	stalled    int
	sidecar    *Sidecar
	stop       context.CancelFunc // of the sidecar
	done       chan struct{}      // closed when it has stopped
}

func version(name string, change func(*serving.Version)) *serving.Version {
	v := &serving.Version{ModelID: serving.ModelID{Model: name, Version: "1"}, InputType: serving.Doubles, Replicas: 1}
	if change != nil {
		change(v)
	}
	return v
}

// newRig is a rig on pipes, for a synctest bubble.
func newRig(t *testing.T, cfg Config) *rig {
	r := &rig{t: t, gateways: newPipes(), containers: newPipes()}
	r.dial.gateway, r.dial.container = r.gateways.dial, r.containers.dial
	r.start(cfg, r.gateways, r.containers)
	return r
}

// newSocketRig is a rig on sockets, for real time.
func newSocketRig(t *testing.T, cfg Config) *rig {
	r := &rig{t: t}
	listen := func() (net.Listener, func() net.Conn) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return ln, func() net.Conn {
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Error(err)
			}
			return nc
		}
	}
	gateways, dialGateway := listen()
	containers, dialContainer := listen()
	r.dial.gateway, r.dial.container = dialGateway, dialContainer
	r.start(cfg, gateways, containers)
	return r
}

func (r *rig) start(cfg Config, gateways, containers net.Listener) {
	r.registry = obs.NewRegistry()
	r.metrics = NewMetrics(r.registry)
	r.done = make(chan struct{})
	if len(cfg.Models) == 0 {
		cfg.Models = []*serving.Version{version("m", nil)}
	}
	cfg.Replica = "m/0"
	cfg.Stalled = func() { r.stalled++ }
	s := New(cfg, r.metrics, discard())
	r.sidecar = s
	ctx, stop := context.WithCancel(r.t.Context())
	r.stop = stop
	go func() {
		defer close(r.done)
		if err := s.Run(ctx, gateways, containers); err != nil {
			r.t.Errorf("Run = %v", err)
		}
	}()
	r.t.Cleanup(func() { stop(); <-r.done })
}

// end stops the sidecar and waits for it.
func (r *rig) end() {
	r.stop()
	<-r.done
}

// running is how many queries run side by side.
func (r *rig) running() int { return r.sidecar.running() }

// pass lets d pass, and all that is to happen by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// whole is the stage of a model without stages.
func (p *pool) whole() *stage { return p.pipe.Load().stages[0] }

func hello(role rpc.Role, token string) rpc.Hello {
	return rpc.Hello{Role: role, MaxFrame: rpc.MaxFrame, Features: rpc.FeatureLZ4, Token: []byte(token)}
}

// tagged is an input that no other query has.
func tagged(tag float64) []byte {
	return rpc.AppendInput(nil, serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(tag))})
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
