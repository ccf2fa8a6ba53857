package gateway_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"topsail/containers/gocontainer"
	"topsail/gateway"
	"topsail/gateway/route"
	"topsail/internal/filestore"
	"topsail/internal/local"
	"topsail/internal/obs"
	"topsail/internal/redisstore"
	"topsail/internal/servers"
	"topsail/serving"
	"topsail/serving/catalog"
	"topsail/sidecar"
)

// catalogStore is what a gateway follows, and people change.
type catalogStore interface {
	gateway.Catalog
	Catalog() *serving.Catalog
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	MergeFile(ctx context.Context, apps []serving.App, versions []serving.Version, current map[string]string) (catalog.Report, error)
	Close() error
}

// TestNoAnswerOfAnotherDefinition deploys, deletes, creates, applies, rolls back, edits
// under --watch and restarts at random, and asks through the cache all the while: every
// answer is of a definition that was in force when the query came, or later.
func TestNoAnswerOfAnotherDefinition(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Run("in a file", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			dir := t.TempDir()
			play(rt, func() (catalogStore, error) { return filestore.Open(dir, log) })
		})
	})
	t.Run("in redis", func(t *testing.T) {
		port, err := servers.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		server, err := servers.Redis(t.TempDir(), port)
		if err == nil {
			err = server.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		defer server.Kill()
		rapid.Check(t, func(rt *rapid.T) {
			client := redis.NewClient(&redis.Options{Addr: server.Addr})
			defer client.Close()
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				rt.Fatal(err)
			}
			play(rt, func() (catalogStore, error) {
				return redisstore.Open(context.Background(), redisstore.Config{Addrs: []string{server.Addr}, Log: log})
			})
		})
	})
}

// story is a gateway whose versions become something else, again and again.
type story struct {
	*rapid.T
	ctx      context.Context
	open     func() (catalogStore, error)
	store    catalogStore
	replicas *local.Registry
	metrics  *sidecar.Metrics
	gateway  *gateway.Gateway
	heard    atomic.Uint64 // the revision that the gateway goes by
	stop     func()        // the gateway
	edits    map[serving.ModelID]int
	running  map[serving.Definition]func() // what stops the replica
	started  int
	force    []map[float64]bool // what could be answered, at first and after each change
	asked    []*question
	all      sync.WaitGroup
}

// question is a query on its way.
type question struct {
	since int // the place in force when it came
	x     float64
	p     serving.Prediction
	err   error
	done  chan struct{}
}

// patienceOf the app is short: queries wait where there is no replica.
const patienceOf = 40 * time.Millisecond

func play(t *rapid.T, open func() (catalogStore, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &story{
		T: t, ctx: ctx, open: open, replicas: local.NewRegistry(), metrics: sidecar.NewMetrics(obs.NewRegistry()),
		edits: map[serving.ModelID]int{}, running: map[serving.Definition]func(){},
	}
	defer s.all.Wait()
	defer cancel()
	s.begin()
	defer s.end()
	s.change(catalog.PutVersion{Version: *s.version("1", 1)})
	s.change(catalog.PutApp{App: serving.App{Name: "app", InputType: serving.Doubles, DefaultOutput: "-1", SLO: patienceOf, Models: []string{"m"}}})
	s.serve()
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		s.ask()
		s.step()
		s.ask()
		if rapid.Bool().Draw(t, "serve") {
			s.serve()
		}
		s.ask()
		if rapid.Bool().Draw(t, "wait") {
			s.check()
		}
	}
	s.serve()
	s.ask()
	s.check()
}

func (s *story) begin() {
	store, err := s.open()
	if err != nil {
		s.Fatal(err)
	}
	s.store = store
	s.heard.Store(0)
	ctx, cancel := context.WithCancel(s.ctx)
	s.gateway = gateway.New(ctx, gateway.Config{Name: "test", Catalog: followed{s}, Resolver: s.replicas, CacheBytes: 1 << 20})
	ended := make(chan error, 1)
	go func(g *gateway.Gateway) { ended <- g.Run(ctx, nil) }(s.gateway)
	s.stop = func() { cancel(); <-ended }
	s.caughtUp()
}

// followed is the store, and notes what the gateway has taken in.
type followed struct{ s *story }

func (f followed) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	return f.s.store.Watch(ctx, func(cat *serving.Catalog) {
		update(cat)
		f.s.heard.Store(cat.Revision)
	})
}

func (s *story) end() {
	s.check()
	s.stop()
	if err := s.store.Close(); err != nil {
		s.Error(err)
	}
}

func (s *story) caughtUp() {
	s.until(func() bool { return s.heard.Load() >= s.store.Catalog().Revision })
}

func (s *story) until(good func() bool) {
	for deadline := time.Now().Add(10 * time.Second); !good(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			s.Fatal("did not come about within 10 s")
		}
	}
}

// version is one that says a number, and which edit of its source its container was
// started with.
func (s *story) version(name string, says int) *serving.Version {
	v := newVersion("m", name)
	v.Container = serving.ContainerSpec{Command: []string{"says"}, Env: map[string]string{"SAYS": strconv.Itoa(says)}}
	return v
}

func (s *story) says(v *serving.Version) float64 {
	says, _ := strconv.Atoi(v.Container.Env["SAYS"])
	return float64(1000*says + s.edits[v.ModelID])
}

// change makes one that may be refused, and waits until the gateway goes by it.
func (s *story) change(c catalog.Change) {
	_, err := s.store.Apply(s.ctx, c, 0)
	if err != nil && !errors.Is(err, catalog.ErrExists) && !errors.Is(err, catalog.ErrNotFound) && !errors.Is(err, catalog.ErrInvalid) {
		s.Fatal(err)
	}
	s.note()
}

// note writes down what is in force from now on.
func (s *story) note() {
	s.caughtUp()
	now := map[float64]bool{}
	if m := s.store.Catalog().Models["m"]; m != nil {
		for _, v := range m.Versions {
			now[s.says(v)] = true
		}
	}
	s.force = append(s.force, now)
}

// step changes something.
func (s *story) step() {
	v := s.version(rapid.SampledFrom([]string{"1", "2"}).Draw(s.T, "version"), rapid.IntRange(1, 3).Draw(s.T, "says"))
	replace := rapid.Bool().Draw(s.T, "replace")
	switch what := rapid.SampledFrom([]string{"deploy", "delete", "create", "apply", "merge", "roll back", "edit", "scale", "restart"}).Draw(s.T, "step"); what {
	case "deploy":
		s.change(catalog.PutVersion{Version: *v, Replace: replace})
	case "delete":
		s.change(catalog.DeleteVersion{ID: v.ModelID})
	case "create":
		s.change(catalog.DeleteVersion{ID: v.ModelID})
		s.change(catalog.PutVersion{Version: *v})
	case "apply":
		s.change(catalog.Import{Versions: []serving.Version{*v}, Keep: true, Replace: replace})
	case "merge":
		if _, err := s.store.MergeFile(s.ctx, nil, []serving.Version{*v}, nil); err != nil && !errors.Is(err, catalog.ErrInvalid) {
			s.Fatal(err)
		}
		s.note()
	case "roll back":
		s.change(catalog.SetCurrent{ID: v.ModelID})
	case "edit":
		if old := s.store.Catalog().Version(v.ModelID); old != nil {
			s.edits[v.ModelID]++
			s.change(catalog.Renew{Old: old.Definition()})
		}
	case "scale":
		s.change(catalog.SetScale{ID: v.ModelID, Replicas: 2})
	case "restart":
		s.check()
		s.stop()
		if err := s.store.Close(); err != nil {
			s.Fatal(err)
		}
		s.begin()
		s.note()
	}
	s.change(catalog.Link{App: "app", Model: "m"}) // which goes with the last version
}

// serve starts replicas of what is in force and has none, and stops some of the others.
func (s *story) serve() {
	wanted := map[serving.Definition]*serving.Version{}
	if m := s.store.Catalog().Models["m"]; m != nil {
		for _, v := range m.Versions {
			wanted[v.Definition()] = v
		}
	}
	stop := rapid.Bool().Draw(s.T, "stop the others")
	for _, d := range slices.Collect(maps.Keys(s.running)) {
		if wanted[d] == nil && stop {
			s.running[d]()
			delete(s.running, d)
		}
	}
	for d, v := range wanted {
		if s.running[d] == nil {
			s.running[d] = s.start(v)
		}
		s.until(func() bool {
			return slices.ContainsFunc(s.gateway.Replicas(), func(r route.Status) bool { return slices.Contains(r.Models, d) })
		})
	}
}

// start runs a replica that says what its version says now, for as long as it runs.
func (s *story) start(v *serving.Version) (stop func()) {
	gateways, containers := listen(), listen()
	s.started++
	name, says := fmt.Sprintf("%v/%d", v.ModelID, s.started), s.says(v)
	ctx, cancel := context.WithCancel(s.ctx)
	side := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{v}}, s.metrics, slog.New(slog.DiscardHandler))
	s.all.Go(func() { _ = side.Run(ctx, gateways, containers) })
	s.all.Go(func() {
		_ = gocontainer.Serve(ctx, gocontainer.Config{Sidecar: containers.Addr().String(), Model: v.ModelID, Replica: name}, func(inputs []serving.Value) []gocontainer.Result {
			time.Sleep(time.Millisecond) // so that some are on their way when it becomes another
			results := make([]gocontainer.Result, len(inputs))
			for i := range results {
				results[i].Output = serving.Number(says)
			}
			return results
		})
	})
	s.replicas.Put(serving.Endpoint{Replica: name, Addr: gateways.Addr().String()})
	return func() { cancel(); s.replicas.Remove(name) }
}

// ask asks one of a few inputs, through the cache.
func (s *story) ask() {
	q := &question{since: len(s.force) - 1, x: float64(rapid.IntRange(1, 2).Draw(s.T, "x")), done: make(chan struct{})}
	s.asked = append(s.asked, q)
	go func(g *gateway.Gateway) {
		defer close(q.done)
		q.p, q.err = g.Predict(s.ctx, &serving.Query{App: "app", Input: serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(q.x))}, Received: time.Now()})
	}(s.gateway)
}

// check waits for the answers, and looks whose they are.
func (s *story) check() {
	for _, q := range s.asked {
		<-q.done
		if q.err != nil {
			s.Fatal(q.err)
		}
		if q.p.Default {
			continue
		}
		got, err := strconv.ParseFloat(string(q.p.Output), 64)
		could := slices.ContainsFunc(s.force[q.since:], func(now map[float64]bool) bool { return now[got] })
		if err != nil || math.IsNaN(got) || !could {
			s.Fatalf("%v was answered by %v (cached %v), and from then on there were %v", q.x, got, q.p.Cached, s.force[q.since:])
		}
	}
	s.asked = nil
}
