package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/feedback"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
)

// story is a catalog and what serves it, on a network in memory and in virtual time.
type story struct {
	*testing.T
	on       pipes.Network
	running  sync.WaitGroup   // all that ends with the test's context
	catalog  *serving.Catalog // complete before the first gateway
	replicas *inprocess.Registry
	started  int // replicas
}

// bubble tells a story.
func bubble(t *testing.T, tell func(s *story)) {
	t.Helper()
	pipes.Bubble(t, func(t *testing.T) {
		s := &story{
			T: t, replicas: inprocess.NewRegistry(),
			catalog: &serving.Catalog{Revision: 1, Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}},
		}
		t.Cleanup(s.running.Wait)
		tell(s)
	})
}

// app registers an app of doubles.
func (s *story) app(name string, policy serving.PolicySpec, models ...string) *serving.App {
	s.Helper()
	a := &serving.App{
		Name: name, InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(30 * time.Second), Models: models, Policy: policy,
	}
	require.NoError(s, a.Check())
	s.catalog.Apps[name] = a
	return a
}

// deploy registers a model of doubles with one replica.
func (s *story) deploy(name string, m model) { s.replica(s.version(name, "1"), m) }

// version registers a version of a model, whose first one is current.
func (s *story) version(model, name string) *serving.Version {
	v := version(model, name)
	m := s.catalog.Models[model]
	if m == nil {
		m = &serving.Model{Name: model, Current: name, Versions: map[string]*serving.Version{}}
		s.catalog.Models[model] = m
	}
	m.Versions[name] = v
	return v
}

func version(model, name string) *serving.Version {
	return &serving.Version{ModelID: serving.ModelID{Model: model, Version: name}, InputType: serving.Doubles, Replicas: 1}
}

// replica runs a sidecar with one container. When both are stopped, gateways still know its address.
func (s *story) replica(v *serving.Version, m model) (stop func()) {
	gateways, containers := s.on.Listen(), s.on.Listen()
	name := fmt.Sprintf("%v/%d", v.ModelID, s.started)
	s.started++
	ctx, stop := context.WithCancel(s.Context())
	side := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{v}}, nil, nil)
	container := gocontainer.Config{Sidecar: containers.Addr().String(), Model: v.ModelID, Signature: v.Signature, Replica: name, Dial: s.on.Dial}
	s.running.Go(func() { _ = side.Run(ctx, gateways, containers) })
	s.running.Go(func() { _ = gocontainer.ServeQueries(ctx, container, m.predict) })
	s.replicas.Put(serving.Endpoint{Replica: name, Addr: gateways.Addr().String()})
	return stop
}

// store is where gateways keep what they learn.
type store interface {
	state.Store
	feedback.Store
}

// disk is a store whose states are in a file.
type disk struct {
	*filestore.Store
	*inprocess.Records
}

func (s *story) open(dir string) disk {
	s.Helper()
	file, err := filestore.Open(dir, slog.New(slog.DiscardHandler))
	require.NoError(s, err)
	s.Cleanup(func() { s.running.Wait(); file.Close() })
	return disk{file, inprocess.NewRecords()}
}

// learned is what a store has of an app and a user.
func (s *story) learned(in store, app, user string) *serving.Learning {
	s.Helper()
	l, err := gateway.Learned(s.Context(), state.New(in, slog.New(slog.DiscardHandler), obs.NewRegistry()), s.catalog, app, user, "")
	require.NoError(s, err)
	return l
}

// gateway starts one, which has connected to all replicas when it returns.
func (s *story) gateway(in store) *edge {
	s.Helper()
	ln := s.on.Listen()
	ctx, stop := context.WithCancel(s.Context())
	g := gateway.New(ctx, gateway.Config{
		Name: ln.Addr().String(), Catalog: fixed{s.catalog}, Resolver: s.replicas, Dial: s.on.Dial, CacheBytes: 1 << 20, States: in, Records: in,
	})
	ended := make(chan struct{})
	s.running.Go(func() {
		defer close(ended)
		if err := g.Run(ctx, ln); err != nil {
			s.Errorf("the gateway: %v", err)
		}
	})
	settle()
	return &edge{story: s, url: "http://" + ln.Addr().String() + "/", client: s.on.Client(), stop: func() { stop(); <-ended }}
}

// settle gives what has started or stopped the time to be known.
func settle() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

// fixed is a catalog that never changes.
type fixed struct{ catalog *serving.Catalog }

func (f fixed) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	update(f.catalog)
	<-ctx.Done()
	return ctx.Err()
}
