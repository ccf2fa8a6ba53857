// Package services has gateways call services that others run. For each instance of a version that is one there is
// a sidecar and a container in this process, which the gateway calls as it calls a replica: so queues, admission,
// the limit of queries side by side and metrics are the same.
package services

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// Catalog knows what is registered, as gateway.Catalog does.
type Catalog interface {
	Watch(ctx context.Context, update func(*serving.Catalog)) error
}

// Find calls update with the instances of a service, at once and whenever they change, until ctx ends.
type Find func(ctx context.Context, service string, update func([]serving.Endpoint)) error

// Config is what Services need.
type Config struct {
	Name     string // of this process, where others call the same instances; else empty
	Catalog  Catalog
	Find     Find
	Registry *inprocess.Registry // gets the instances
	Metrics  *sidecar.Metrics
	Demand   *demand.Meter
	Local    *rpc.Local // where their sidecars listen
	Log      *slog.Logger
}

// Services are the services of a catalog, while Run runs.
type Services struct {
	cfg   Config
	used  chan struct{} // closed with the first service
	first sync.Once
	known map[serving.ModelID]*service // of the catalog; only of the watch
	all   sync.WaitGroup               // services and instances

	mu    sync.Mutex           // guards the following
	names map[string]*instance // those that have not ended
}

// New follows nothing yet.
func New(cfg Config) *Services {
	return &Services{cfg: cfg, used: make(chan struct{}), known: map[serving.ModelID]*service{}, names: map[string]*instance{}}
}

// Used is closed with the first service: only then is there something to report.
func (s *Services) Used() <-chan struct{} { return s.used }

// Run follows the catalog until ctx ends, and returns when all instances have ended.
func (s *Services) Run(ctx context.Context) error {
	defer s.all.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return s.cfg.Catalog.Watch(ctx, func(c *serving.Catalog) { s.update(ctx, c) })
}

// update starts and stops services, so that they are those of the catalog.
func (s *Services) update(ctx context.Context, c *serving.Catalog) {
	wanted := map[serving.ModelID]*serving.Version{}
	for _, m := range c.Models {
		for _, v := range m.Versions {
			if v.Service != nil {
				wanted[v.ModelID] = v
			}
		}
	}
	for id, old := range s.known {
		if v := wanted[id]; v == nil || !sameService(v, old.version) {
			old.stop()
			delete(s.known, id)
		}
	}
	for id, v := range wanted {
		if s.known[id] == nil {
			s.known[id] = s.start(ctx, v)
		}
	}
}

// sameService says whether what calls one also serves for the other.
func sameService(a, b *serving.Version) bool {
	x := *a
	x.Description, x.Labels, x.Origin, x.Deployed, x.Pin, x.Replicas = b.Description, b.Labels, b.Origin, b.Deployed, b.Pin, b.Replicas
	return reflect.DeepEqual(&x, b)
}

// service is one version.
type service struct {
	*Services
	version   *serving.Version
	stop      context.CancelFunc
	instances map[string]*instance // by URL; only of what finds them
}

// maxInstances bounds those of a service.
const maxInstances = 256

func (s *Services) start(ctx context.Context, v *serving.Version) *service {
	s.first.Do(func() { close(s.used) })
	ctx, stop := context.WithCancel(ctx)
	one := &service{Services: s, version: v, stop: stop, instances: map[string]*instance{}}
	s.all.Go(func() { one.run(ctx) })
	return one
}

// run keeps up the instances until ctx ends.
func (s *service) run(ctx context.Context) {
	spec := s.version.Service
	if spec.Name == "" {
		urls := map[string]bool{}
		for _, addr := range spec.Addrs {
			urls[spec.URL(addr)] = true
		}
		s.set(ctx, urls)
		<-ctx.Done()
		return
	}
	err := s.cfg.Find(ctx, spec.Name, func(list []serving.Endpoint) { s.set(ctx, s.healthy(list)) })
	if ctx.Err() == nil {
		s.cfg.Log.Error("the instances of a service cannot be found", "model", s.version.ModelID, "service", spec.Name, "err", err)
	}
}

// healthy is where instances are that pass their checks.
func (s *service) healthy(list []serving.Endpoint) map[string]bool {
	urls := map[string]bool{}
	for _, e := range list {
		if e.Ready && len(urls) == maxInstances {
			s.cfg.Log.Warn("a service has too many instances; the others are not called", "model", s.version.ModelID, "service", s.version.Service.Name, "called", maxInstances)
			break
		}
		if e.Ready {
			urls[instanceURL(e)] = true
		}
	}
	return urls
}

// instanceURL is where an instance is that Consul has.
func instanceURL(e serving.Endpoint) string {
	if e.Scheme != "" {
		return e.Scheme + "://" + e.Addr
	}
	return "http://" + e.Addr
}

// set starts and stops instances, so that they are those at urls.
func (s *service) set(ctx context.Context, urls map[string]bool) {
	for url, one := range s.instances {
		if !urls[url] {
			one.stop()
			delete(s.instances, url)
		}
	}
	for url := range urls {
		if s.instances[url] == nil {
			s.instances[url] = s.startInstance(ctx, url)
		}
	}
}

// startInstance runs an instance under the first name that is free: one that it follows may still answer.
func (s *service) startInstance(ctx context.Context, url string) *instance {
	ctx, stop := context.WithCancel(ctx)
	one := &instance{service: s, url: url, stop: stop, problem: errConnecting, since: time.Now()}
	s.Services.mu.Lock()
	defer s.Services.mu.Unlock()
	_, where, _ := strings.Cut(url, "://")
	name := fmt.Sprintf("%v@%s", s.version.ModelID, where)
	if s.cfg.Name != "" {
		name += "@" + s.cfg.Name
	}
	one.name = name
	for n := 2; s.names[one.name] != nil; n++ {
		one.name = fmt.Sprintf("%s@%d", name, n)
	}
	s.names[one.name] = one
	s.all.Go(func() {
		defer s.ended(one)
		one.run(ctx)
	})
	return one
}

func (s *Services) ended(one *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, one.name)
}

// Instance is one instance of a service as this process sees it.
type Instance struct {
	Name    string // of the replica that it is to gateways
	URL     string
	Model   serving.Definition
	Problem error     // why it is not ready; nil: it is
	Since   time.Time // that this is so
}

// Instances are those that are called, by name.
func (s *Services) Instances() (list []Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		one := s.names[name]
		one.mu.Lock()
		list = append(list, Instance{Name: name, URL: one.url, Model: one.version.Definition(), Problem: one.problem, Since: one.since})
		one.mu.Unlock()
	}
	return list
}

// Beside is a resolver of the endpoints that two resolvers have.
func Beside(a, b route.Resolver) route.Resolver { return beside{a, b} }

type beside [2]route.Resolver

// Watch implements route.Resolver.
func (b beside) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex // guards lists, and orders updates
	var lists [len(b)][]serving.Endpoint
	var watching sync.WaitGroup
	for i, r := range b {
		watching.Go(func() {
			stop(r.Watch(ctx, func(list []serving.Endpoint) {
				mu.Lock()
				defer mu.Unlock()
				lists[i] = list
				update(slices.Concat(lists[:]...))
			}))
		})
	}
	watching.Wait()
	return context.Cause(ctx)
}
