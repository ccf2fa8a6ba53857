package gateway_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/wait"
)

// world is what a test in a bubble runs, on a network of pipes. All of it ends with the test.
type world struct {
	*testing.T
	on       network
	client   *http.Client    // on the network
	ctx      context.Context // of all that runs
	running  sync.WaitGroup
	replicas *inprocess.Registry
}

// bubble runs f in a bubble, whose time is virtual.
func bubble(t *testing.T, f func(t *world)) {
	t.Helper()
	pipes.Bubble(t, func(t *testing.T) {
		var n pipes.Network
		ctx, stop := context.WithCancel(t.Context())
		w := &world{T: t, on: network{n.Listen, n.Dial}, client: n.Client(), ctx: ctx, replicas: inprocess.NewRegistry()}
		defer w.running.Wait()
		defer stop()
		f(w)
	})
}

// replica starts one of a version. Gateways find it once it is among the replicas.
func (w *world) replica(name string, v *serving.Version, model gocontainer.Predict) serving.Endpoint {
	return startReplica(w.ctx, &w.running, w.on, name, v, model)
}

// gateway runs one until ctx is done. ended has what its Run returned.
func (w *world) gateway(ctx context.Context, ln net.Listener, cfg gateway.Config) (g *gateway.Gateway, ended <-chan error) {
	cfg.Dial, cfg.Name, cfg.Resolver = w.on.dial, "test", w.replicas
	g, end := gateway.New(ctx, cfg), make(chan error, 1)
	w.running.Go(func() { end <- g.Run(ctx, ln) })
	return g, end
}

// ready waits until a gateway has so many replicas that are ready.
func (w *world) ready(g *gateway.Gateway, n int) {
	w.Helper()
	wait.Until(w, "the replicas", func() bool {
		all := g.Replicas()
		return len(all) == n && !slices.ContainsFunc(all, func(r route.Status) bool { return len(r.Models) == 0 })
	})
}
