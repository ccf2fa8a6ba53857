//go:build system

package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/feedback"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// house is what gateways share: a catalog, and replicas that run in this process.
type house struct {
	t        testing.TB
	ctx      context.Context
	replicas *inprocess.Registry
	catalog  *serving.Catalog // complete before the first gateway
	sidecars *sidecar.Metrics
	started  int // replicas
}

func newHouse(t testing.TB) *house {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &house{
		t: t, ctx: ctx, replicas: inprocess.NewRegistry(), sidecars: sidecar.NewMetrics(obs.NewRegistry()),
		catalog: &serving.Catalog{Revision: 1, Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}},
	}
}

// app registers an app of doubles that caches nothing.
func (h *house) app(name string, slo time.Duration, policy serving.PolicySpec, models ...string) *serving.App {
	h.t.Helper()
	a := &serving.App{
		Name: name, InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(slo), Models: models, Policy: policy,
		Cache: serving.CacheSpec{Off: true},
	}
	if err := a.Check(); err != nil {
		h.t.Fatal(err)
	}
	h.catalog.Apps[name] = a
	return a
}

// model registers a model of doubles with one replica. Its first version is the current one.
func (h *house) model(name string, m model) (stop func()) {
	h.t.Helper()
	return h.replica(h.version(name, "1"), m)
}

func (h *house) version(name, of string) *serving.Version {
	v := version(name, of)
	m := h.catalog.Models[name]
	if m == nil {
		m = &serving.Model{Name: name, Current: of, Versions: map[string]*serving.Version{}}
		h.catalog.Models[name] = m
	}
	m.Versions[of] = v
	return v
}

// replica starts a sidecar with one container. What stops both leaves its address known.
func (h *house) replica(v *serving.Version, m model) (stop func()) {
	h.t.Helper()
	gateways, containers := listen(h.t), listen(h.t)
	name := fmt.Sprintf("%v/%d", v.ModelID, h.started)
	h.started++
	ctx, cancel := context.WithCancel(h.ctx)
	one := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{v}}, h.sidecars, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	running.Go(func() { one.Run(ctx, gateways, containers) })
	running.Go(func() {
		gocontainer.Serve(ctx, gocontainer.Config{Sidecar: containers.Addr().String(), Model: v.ModelID, Replica: name}, m.predict(ctx))
	})
	h.replicas.Put(serving.Endpoint{Replica: name, Addr: gateways.Addr().String()})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	h.t.Cleanup(stop)
	return stop
}

// memory is where gateways keep what they learn.
type memory struct {
	states  state.Store
	records feedback.Store
}

// edge is a gateway with its HTTP.
type edge struct {
	*gateway.Gateway
	t       testing.TB
	url     string
	client  *http.Client
	metrics *obs.Registry
	log     *logged
	stop    func()
}

// gateway starts one, and waits until it knows all replicas.
func (h *house) gateway(name string, in memory) *edge {
	h.t.Helper()
	e := &edge{
		t: h.t, metrics: obs.NewRegistry(), log: &logged{},
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	ln := listen(h.t)
	e.url = "http://" + ln.Addr().String() + "/"
	ctx, cancel := context.WithCancel(h.ctx)
	e.Gateway = gateway.New(ctx, gateway.Config{
		Name: name, Catalog: fixed{h.catalog}, Resolver: h.replicas, CacheBytes: 1 << 20,
		States: in.states, Records: in.records, Metrics: e.metrics, Log: slog.New(slog.NewTextHandler(e.log, nil)),
	})
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx, ln); err != nil {
			h.t.Errorf("gateway %s: %v", name, err)
		}
	})
	e.stop = sync.OnceFunc(func() { e.client.CloseIdleConnections(); cancel(); running.Wait() })
	h.t.Cleanup(e.stop)
	eventually(h.t, func() bool {
		ready := 0
		for _, r := range e.Replicas() {
			ready += len(r.Models)
		}
		return ready == h.started
	})
	return e
}

// learner is a gateway that keeps what it learns in this process alone.
func (h *house) learner() (*edge, memory) {
	h.t.Helper()
	m := onDisk(h.t, h.t.TempDir())
	return h.gateway("edge", m.memory), m.memory
}

// send posts a body, and returns the status and what came back.
func (e *edge) send(path, body, accept string) (status int, text string, err error) {
	request, err := http.NewRequest("POST", e.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", accept)
	response, err := e.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return response.StatusCode, string(all), err
}

// value is that of a series, written as the gateway shows it; 0 where there is none.
func (e *edge) value(series string) (x float64) {
	e.t.Helper()
	shown := httptest.NewRecorder()
	e.metrics.Handler().ServeHTTP(shown, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(shown.Body.String()) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			if _, err := fmt.Sscan(value, &x); err != nil {
				e.t.Fatal(err)
			}
		}
	}
	return x
}
