//go:build system

package e2e

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// rig is a gateway's core with replicas that run in this process.
type rig struct {
	t         testing.TB
	ctx       context.Context
	wg        sync.WaitGroup
	predictor *predict.Predictor
	table     *route.Table
	registry  *obs.Registry
	metrics   *sidecar.Metrics
	mu        sync.Mutex
	endpoints []serving.Endpoint
	changed   chan struct{}
	log       *slog.Logger
}

func newRig(t testing.TB, cacheBytes int64) *rig {
	ctx, cancel := context.WithCancel(context.Background())
	registry := obs.NewRegistry()
	r := &rig{t: t, ctx: ctx, registry: registry, metrics: sidecar.NewMetrics(registry), changed: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler)}
	c := cache.New(cacheBytes)
	r.table = route.NewTable("test", r, r.log)
	r.predictor = predict.New(c, dispatch.New(r.table, registry), predict.NewIDs(ctx, nil, r.log), untaught{}, predict.NewMetrics(registry))
	r.wg.Go(func() { r.table.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		r.wg.Wait()
		c.Close()
	})
	return r
}

// Watch implements route.Resolver.
func (r *rig) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	for {
		select {
		case <-r.changed:
			r.mu.Lock()
			list := append([]serving.Endpoint(nil), r.endpoints...)
			r.mu.Unlock()
			update(list)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// replica starts a sidecar with one container, and returns a function that stops both.
func (r *rig) replica(name string, v *serving.Version, model gocontainer.Predict) (stop func()) {
	r.t.Helper()
	return r.start(name, v, func(ctx context.Context, cfg gocontainer.Config) {
		if model != nil {
			gocontainer.Serve(ctx, cfg, model)
		}
	})
}

// queries is replica for a model that gets named inputs and sessions.
func (r *rig) queries(name string, v *serving.Version, signature *serving.Signature, model gocontainer.PredictQueries) (stop func()) {
	r.t.Helper()
	return r.start(name, v, func(ctx context.Context, cfg gocontainer.Config) {
		cfg.Signature = signature
		gocontainer.ServeQueries(ctx, cfg, model)
	})
}

func (r *rig) start(name string, v *serving.Version, container func(context.Context, gocontainer.Config)) (stop func()) {
	r.t.Helper()
	gateways, containers := listen(r.t), listen(r.t)
	ctx, cancel := context.WithCancel(r.ctx)
	s := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{v}, ContainerToken: []byte("secret")}, r.metrics, r.log)
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx, gateways, containers) })
	wg.Go(func() {
		container(ctx, gocontainer.Config{Sidecar: containers.Addr().String(), Token: "secret", Model: v.ModelID, Replica: name})
	})
	r.add(serving.Endpoint{Replica: name, Addr: gateways.Addr().String()})
	stop = func() { cancel(); wg.Wait() }
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) add(e serving.Endpoint) {
	r.mu.Lock()
	r.endpoints = append(r.endpoints, e)
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// ready waits until n replicas of a version are ready.
func (r *rig) ready(id serving.ModelID, n int) {
	r.t.Helper()
	eventually(r.t, func() bool { return r.table.Group(serving.Definition{ModelID: id}).Len() == n })
}

// eventually waits for something that other goroutines bring about.
func eventually(t testing.TB, good func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !good() {
		if time.Now().After(deadline) {
			t.Fatal("did not come about within 10 s")
		}
		time.Sleep(time.Millisecond)
	}
}

func version(model, name string) *serving.Version {
	return &serving.Version{ModelID: serving.ModelID{Model: model, Version: name}, InputType: serving.Doubles, Replicas: 1}
}

func catalog(slo time.Duration, versions ...*serving.Version) *serving.Catalog {
	m := &serving.Model{Name: versions[0].Model, Current: versions[len(versions)-1].Version, Versions: map[string]*serving.Version{}}
	for _, v := range versions {
		m.Versions[v.ModelID.Version] = v
	}
	a := &serving.App{Name: "app", InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(slo), Models: []string{m.Name}}
	return &serving.Catalog{Revision: 1, Apps: map[string]*serving.App{"app": a}, Models: map[string]*serving.Model{m.Name: m}}
}

func doubles(xs ...float64) serving.Input {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return serving.Input{Type: serving.Doubles, Data: b}
}

func query(xs ...float64) *serving.Query {
	return &serving.Query{App: "app", Input: doubles(xs...), Received: time.Now()}
}

// sum adds up the numbers of each input.
func sum(inputs []serving.Value) []gocontainer.Result {
	out := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		s := 0.0
		for at := 0; at < len(in.Data); at += 8 {
			s += math.Float64frombits(binary.LittleEndian.Uint64(in.Data[at:]))
		}
		out[i].Output = serving.Number(s)
	}
	return out
}

// untaught gives policies the state before any feedback.
type untaught struct{}

func (untaught) Get(a *state.App, _, _ string) *selection.State { return a.Fresh() }
