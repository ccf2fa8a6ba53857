package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/test/require"
)

// instanceThat is an instance whose model answers with a name; of the version of this path.
func instanceThat(t *testing.T, name string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.Method == http.MethodPost && q.Header.Get("Authorization") != "Bearer k":
			w.WriteHeader(http.StatusUnauthorized)
		case q.Method == http.MethodPost:
			fmt.Fprintf(w, `{"outputs": [{"name": "y", "datatype": "BYTES", "shape": [1], "data": [%q]}]}`, name)
		case q.URL.Path == "/v2/models/m":
			io.WriteString(w, `{"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, -1]}]}`)
		case q.URL.Path != "/v2/models/m/ready":
			http.NotFound(w, q)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// changing is a catalog, or the instances of a service, that a test changes.
type changing[T any] struct {
	mu      sync.Mutex // guards the following
	now     T
	changed chan struct{}
}

func newChanging[T any](first T) *changing[T] {
	return &changing[T]{now: first, changed: make(chan struct{})}
}

func (c *changing[T]) set(next T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = next
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *changing[T]) Watch(ctx context.Context, update func(T)) error {
	for {
		c.mu.Lock()
		now, changed := c.now, c.changed
		c.mu.Unlock()
		update(now)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rig is a gateway, and what calls services beside it.
type rig struct {
	*testing.T
	services *Services
	gateway  *gateway.Gateway
	catalog  *changing[*serving.Catalog]
	found    *changing[[]serving.Endpoint]
	registry *inprocess.Registry
}

func version(change func(*serving.Version)) *serving.Version {
	v := &serving.Version{
		ModelID: serving.ModelID{Model: "m", Version: "1"}, Generation: "g", InputType: serving.Doubles,
		Service: &serving.ServiceSpec{Protocol: serving.ServiceOIP, Name: "others"},
	}
	change(v)
	return v
}

func catalogOf(v *serving.Version) *serving.Catalog {
	app := &serving.App{Name: "app", InputType: serving.Doubles, DefaultOutput: `"default"`, SLO: serving.Duration(time.Minute), Models: []string{"m"}}
	model := &serving.Model{Name: "m", Current: v.Version, Versions: map[string]*serving.Version{v.Version: v}}
	return &serving.Catalog{Revision: 1, Apps: map[string]*serving.App{"app": app}, Models: map[string]*serving.Model{"m": model}}
}

func newRig(t *testing.T, v *serving.Version) *rig {
	r := &rig{T: t, catalog: newChanging(catalogOf(v)), found: newChanging[[]serving.Endpoint](nil), registry: inprocess.NewRegistry()}
	log, local := slog.New(slog.DiscardHandler), new(rpc.Local)
	r.services = New(Config{
		Name: "gw", Catalog: r.catalog, Registry: r.registry, Metrics: sidecar.NewMetrics(obs.NewRegistry()), Demand: demand.NewMeter(), Local: local, Log: log,
		Find: func(ctx context.Context, service string, update func([]serving.Endpoint)) error {
			if service != "others" {
				return errors.New("no such service")
			}
			return r.found.Watch(ctx, update)
		},
	})
	r.gateway = gateway.New(t.Context(), gateway.Config{
		Name: "gw", Catalog: r.catalog, Resolver: Beside(inprocess.NewRegistry(), r.registry), CacheBytes: 0,
		Dial: local.Before(func(context.Context, string) (net.Conn, error) { return nil, errors.New("another one is dialled") }),
	})
	ctx, stop := context.WithCancel(t.Context())
	rest, stopRest := context.WithCancel(context.WithoutCancel(t.Context()))
	var asking, calling sync.WaitGroup
	asking.Go(func() { _ = r.gateway.Run(ctx, nil) })
	calling.Go(func() { _ = r.services.Run(rest) })
	t.Cleanup(func() { stop(); asking.Wait(); stopRest(); calling.Wait() })
	return r
}

// ask asks the app, which waits for an instance.
func (r *rig) ask() string {
	r.Helper()
	q := serving.Query{App: "app", Input: serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}, Received: time.Now()}
	ps, err := r.gateway.Predict(r.Context(), q)
	for errors.Is(err, serving.ErrNoCatalog) {
		ps, err = r.gateway.Predict(r.Context(), q)
	}
	require.NoError(r, err)
	return string(ps[0].Output)
}

// await waits until the registry has what is wanted.
func (r *rig) await(what string, is func([]serving.Endpoint) bool) {
	r.Helper()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	var last []serving.Endpoint
	_ = r.registry.Watch(ctx, func(list []serving.Endpoint) {
		if last = list; is(list) {
			stop()
		}
	})
	if !is(last) {
		r.Fatalf("%s: there is %+v", what, last)
	}
}

func keyFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("k\n"), 0o600))
	return file
}

// The instances are those that Consul has and that pass their checks, as they come and go.
func TestInstancesAreFound(t *testing.T) {
	one, two := instanceThat(t, "one"), instanceThat(t, "two")
	at := func(s *httptest.Server, ready bool) serving.Endpoint {
		return serving.Endpoint{Replica: s.URL, Addr: strings.TrimPrefix(s.URL, "http://"), Ready: ready}
	}
	r := newRig(t, version(func(v *serving.Version) { v.Service.APIKeyFile = keyFile(t) }))
	r.found.set([]serving.Endpoint{at(one, true), at(two, false)})
	if got := r.ask(); got != `"one"` {
		t.Errorf("at first the answer is %s", got)
	}
	<-r.services.Used()
	r.found.set([]serving.Endpoint{at(two, true)})
	name := "m:1@" + at(two, true).Addr + "@gw"
	r.await("the second alone", func(list []serving.Endpoint) bool {
		return len(list) == 1 && list[0].Ready && list[0].Replica == name && slices.Equal(list[0].Models, []serving.Definition{{ModelID: serving.ModelID{Model: "m", Version: "1"}, Generation: "g"}})
	})
	if got := r.ask(); got != `"two"` {
		t.Errorf("then the answer is %s", got)
	}
	if list := r.services.Instances(); len(list) != 1 || list[0].Name != name || list[0].URL != two.URL || list[0].Problem != nil {
		t.Errorf("the instances are %+v", list)
	}
	r.catalog.set(&serving.Catalog{Revision: 2})
	r.await("none", func(list []serving.Endpoint) bool { return len(list) == 0 })
}

// Addresses are called as they are, and a version that changes is called as it says then.
func TestInstancesAtAddresses(t *testing.T) {
	one, two := instanceThat(t, "one"), instanceThat(t, "two")
	atAddr := func(generation string, addrs ...string) *serving.Version {
		return version(func(v *serving.Version) {
			v.Generation = generation
			v.Service = &serving.ServiceSpec{Protocol: serving.ServiceOIP, Addrs: addrs, APIKeyFile: keyFile(t)}
		})
	}
	r := newRig(t, atAddr("a", strings.TrimPrefix(one.URL, "http://")))
	if got := r.ask(); got != `"one"` {
		t.Errorf("at first the answer is %s", got)
	}
	next := catalogOf(atAddr("b", two.URL+"/"))
	next.Revision = 2
	r.catalog.set(next)
	r.gateway.AwaitCatalog(t.Context(), 2)
	if got := r.ask(); got != `"two"` { // only instances of the new definition are asked
		t.Errorf("then the answer is %s", got)
	}
	a, b := atAddr("b", "x:1"), atAddr("b", "x:1")
	b.Service.APIKeyFile = a.Service.APIKeyFile
	if b.Description, b.Labels = "another one", []string{"x"}; !sameService(a, b) {
		t.Error("a description makes another service")
	}
	if b.Service.Concurrency = 3; sameService(a, b) {
		t.Error("a concurrency does not")
	}
}

// An instance that cannot be called says why.
func TestProblemsOfInstances(t *testing.T) {
	r := newRig(t, version(func(v *serving.Version) {
		v.Service = &serving.ServiceSpec{Protocol: serving.ServiceOpenAI, Addrs: []string{"127.0.0.1:1"}, APIKeyFile: filepath.Join(t.TempDir(), "none")}
		v.InputType = serving.Strings
	}))
	r.await("an instance", func(list []serving.Endpoint) bool { return len(list) == 1 })
	for {
		problem := r.services.Instances()[0].Problem
		if problem == nil {
			t.Fatal("there is no problem")
		}
		if errors.Is(problem, os.ErrNotExist) {
			break
		}
	}
}

func TestManyInstances(t *testing.T) {
	if got := instanceURL(serving.Endpoint{Addr: "a:1", Scheme: "https"}); got != "https://a:1" {
		t.Error(got)
	}
	s := &service{Services: New(Config{Log: slog.New(slog.DiscardHandler)}), version: version(func(*serving.Version) {})}
	var list []serving.Endpoint
	for i := range 2 * maxInstances {
		list = append(list, serving.Endpoint{Addr: fmt.Sprintf("10.0.0.1:%d", i+1), Ready: i%2 == 1})
	}
	if urls := s.healthy(list); len(urls) != maxInstances {
		t.Errorf("%d instances", len(urls))
	}
	if urls := s.healthy(append(list, serving.Endpoint{Addr: "10.0.0.2:1", Ready: true})); len(urls) != maxInstances {
		t.Errorf("%d instances of more than there may be", len(urls))
	}
}
