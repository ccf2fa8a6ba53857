package gateway_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/feedback"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// catalogStore is what a gateway follows, and people change.
type catalogStore interface {
	gateway.Catalog
	state.Store
	Catalog() *serving.Catalog
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	MergeFile(ctx context.Context, apps []serving.App, versions []serving.Version, current map[string]string) (catalog.Report, error)
	Close() error
}

// stores are all that a gateway has.
type stores struct {
	catalogStore
	records feedback.Store
}

// apps ask models with replicas of their own, one that a host holds, one after another, and
// by a policy that learns of versions.
var apps = []serving.App{
	{Name: "alone", Models: []string{"m"}},
	{Name: "tail", Models: []string{"n"}},
	{Name: "hosted", Models: []string{"h"}},
	{Name: "chain", Stages: serving.Pipeline{{Name: "first", Model: "m"}, {Name: "second", Model: "n"}}},
	{Name: "rollout", Models: []string{"m"}, Policy: serving.PolicySpec{Kind: serving.PolicyVersions, Weights: map[string]float64{"1": 1, "2": 1}}},
}

// tailed is what n adds to its input for each number of its definition.
const tailed = 1 << 20

const (
	objective = 500 * time.Millisecond
	// hasty is what queries wait that may find no replica.
	hasty = 15 * time.Millisecond
	// slow is an input that models take longer for.
	slow = 2
)

// story is a gateway whose versions become something else, again and again. Each definition
// answers with a number that no other one has.
type story struct {
	*rapid.T
	ctx      context.Context
	on       network
	tally    *tally
	open     func() (stores, error)
	store    stores
	replicas *inprocess.Registry
	metrics  *sidecar.Metrics
	gateway  *gateway.Gateway
	heard    atomic.Uint64                 // the revision that the gateway goes by
	stop     func()                        // the gateway
	running  map[serving.Definition]func() // what stops the replica
	started  int
	been     map[serving.ModelID]bool // current at some time
	moments  []moment                 // what was in force, at first and after each change
	asked    []*question
	told     []*question // answers of the policy's, for feedback
	lessons  []*lesson
	right    map[float64]float64 // by number: feedback that says it is right
	all      sync.WaitGroup

	mu      sync.Mutex // guards the following
	numbers map[serving.Definition]float64
}

// moment is what is in force from one change to the next, as numbers by model.
type moment struct {
	serves map[string][]float64 // the current version, or what may serve until it has a replica
	there  map[string][]float64 // all versions
	ready  map[string]bool      // the current version has a replica
}

// question is a query on its way.
type question struct {
	app   string
	since int // the moment when it came
	x     float64
	ready bool // it had a replica of all that it needed
	p     serving.Prediction
	got   float64
	err   error
	done  chan struct{}
}

// lesson is feedback on its way.
type lesson struct {
	of      *question
	since   int
	learned []serving.Learned
	err     error
	done    chan struct{}
}

func play(t *rapid.T, on network, tally *tally, open func() (stores, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &story{
		T: t, ctx: ctx, on: on, tally: tally, open: open, replicas: inprocess.NewRegistry(), metrics: sidecar.NewMetrics(obs.NewRegistry()),
		running: map[serving.Definition]func(){}, been: map[serving.ModelID]bool{}, right: map[float64]float64{}, numbers: map[serving.Definition]float64{},
	}
	defer s.all.Wait()
	defer cancel()
	s.begin()
	defer s.end()
	for _, model := range []string{"house", "m", "n", "h"} {
		s.change(catalog.PutVersion{Version: *version(model, "1", 1)})
	}
	for _, app := range apps {
		app.InputType, app.DefaultOutput, app.SLO = serving.Doubles, "-1", serving.Duration(objective)
		s.change(catalog.PutApp{App: app})
	}
	s.serve()
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		s.ask()
		s.teach()
		s.step()
		s.ask()
		s.teach()
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
	s.ask()
	s.check()
	s.checkState()
}

func (s *story) begin() {
	store, err := s.open()
	require.NoError(s, err)
	s.store = store
	s.heard.Store(0)
	ctx, cancel := context.WithCancel(s.ctx)
	s.gateway = gateway.New(ctx, gateway.Config{
		Name: "test", Catalog: followed{s}, Resolver: s.replicas, CacheBytes: 1 << 20, Waker: make(bell), States: store, Records: store.records, Dial: s.on.dial,
	})
	ended := make(chan error, 1)
	go func(g *gateway.Gateway) { ended <- g.Run(ctx, nil) }(s.gateway)
	s.stop = func() { cancel(); <-ended }
	s.note()
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

// version is one of a content, which may be redelivered.
func version(model, name string, content int) *serving.Version {
	v := newVersion(model, name)
	switch model {
	case "h":
		v.HostedBy, v.Container.Bundle = "house", fmt.Sprintf("sha256:%064x", content)
	case "house":
		v.InputType, v.Host = 0, &serving.HostSpec{MemoryMB: 64}
		fallthrough
	default:
		v.Container = serving.Container{Command: []string{"says"}, Env: map[string]string{"CONTENT": strconv.Itoa(content)}}
	}
	return v
}

// number is what a definition says, and no other one does.
func (s *story) number(d serving.Definition) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.numbers[d] == 0 {
		s.numbers[d] = float64(len(s.numbers) + 1)
	}
	return s.numbers[d]
}

// says is what a definition answers to an input.
func (s *story) says(d serving.Definition, x float64) float64 {
	if d.Model == "n" {
		return tailed*s.number(d) + x
	}
	return s.number(d)
}

// change makes one that may be refused.
func (s *story) change(c catalog.Change) {
	_, err := s.store.Apply(s.ctx, c, 0)
	s.changed(err)
}

// changed waits until the gateway goes by a change that was made, or refused.
func (s *story) changed(err error) {
	if err != nil && !errors.Is(err, catalog.ErrExists) && !errors.Is(err, catalog.ErrNotFound) && !errors.Is(err, catalog.ErrInvalid) {
		s.Fatal(err)
	}
	s.note()
}

// note writes down what is in force from now on.
func (s *story) note() {
	wait.Until(s, "the catalog at the gateway", func() bool { return s.heard.Load() >= s.store.Catalog().Revision })
	cat := s.store.Catalog()
	now := moment{serves: map[string][]float64{}, there: map[string][]float64{}, ready: map[string]bool{}}
	for app, model := range map[string]string{"alone": "m", "tail": "n", "hosted": "h"} {
		m := cat.Models[model]
		if m == nil {
			continue
		}
		if current := m.Versions[m.Current]; current != nil {
			s.been[current.ModelID] = true
			id, _ := s.gateway.Serving(app, model)
			now.ready[model] = id == current.ModelID && slices.ContainsFunc(cat.Definitions(current), s.listed)
		}
		for name, v := range m.Versions {
			for _, d := range cat.Definitions(v) {
				now.there[model] = append(now.there[model], s.number(d))
				// A version that was current answers where the current one has no replica, which may
				// change between two moments.
				if name == m.Current || s.been[v.ModelID] {
					now.serves[model] = append(now.serves[model], s.number(d))
				}
			}
		}
	}
	s.moments = append(s.moments, now)
}

func (s *story) now() *moment { return &s.moments[len(s.moments)-1] }

// wants is what must be ready for an answer of an app.
func wants(app *serving.App) []string {
	if app.Stages != nil {
		return []string{"m", "n"}
	}
	return app.Models
}

// ask asks each app twice about one of a few inputs, through the cache.
func (s *story) ask() {
	x := float64(rapid.IntRange(1, slow).Draw(s.T, "x"))
	for i := range apps {
		ready := !slices.ContainsFunc(wants(&apps[i]), func(model string) bool { return !s.now().ready[model] })
		for range 2 {
			q := &question{app: apps[i].Name, since: len(s.moments) - 1, x: x, ready: ready, done: make(chan struct{})}
			s.asked = append(s.asked, q)
			go s.predict(s.gateway, q)
		}
	}
}

func (s *story) predict(g *gateway.Gateway, q *question) {
	defer close(q.done)
	query := serving.Query{App: q.app, Input: input(q.x), Received: time.Now()}
	if !q.ready {
		query.Timeout = hasty
	}
	q.p, q.err = predict(s.ctx, g, query)
}

// predict asks one query.
func predict(ctx context.Context, g *gateway.Gateway, q serving.Query) (p serving.Prediction, err error) {
	ps, err := g.Predict(ctx, q)
	if err == nil {
		p = ps[0]
	}
	return p, err
}

func input(x float64) serving.Input {
	return serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))}
}

// teach says of an answer of the policy's, which may be of a definition that is gone, that it
// was right.
func (s *story) teach() {
	if len(s.told) == 0 {
		return
	}
	of := rapid.SampledFrom(s.told).Draw(s.T, "answer")
	s.told = slices.DeleteFunc(s.told, func(q *question) bool { return q == of })
	s.right[of.got]++
	l := &lesson{of: of, since: len(s.moments) - 1, done: make(chan struct{})}
	s.lessons = append(s.lessons, l)
	label, err := serving.NewOutput(serving.Number(of.got))
	require.NoError(s, err)
	f := serving.Feedback{App: of.app, QueryID: of.p.QueryID, Input: input(of.x), Label: label, Timeout: 10 * hasty}
	if !s.now().ready["m"] {
		f.Timeout = hasty
	}
	go func(g *gateway.Gateway) {
		defer close(l.done)
		l.learned, l.err = g.Feedback(s.ctx, []serving.Feedback{f})
	}(s.gateway)
}

// check waits for the answers, and looks whose they are.
func (s *story) check() {
	for _, q := range s.asked {
		<-q.done
		s.checkAnswer(q)
	}
	for _, l := range s.lessons {
		<-l.done
		s.checkLesson(l)
	}
	s.asked, s.lessons = nil, nil
}

func (s *story) checkAnswer(q *question) {
	if refusal, is := errors.AsType[*serving.QueryError](q.err); q.err != nil && !is {
		s.Fatalf("%s: %v, %v", q.app, q.err, refusal)
	}
	s.tally.asked++
	if q.ready {
		s.tally.could++
	}
	if q.err != nil || q.p.Default {
		return
	}
	var err error
	if q.got, err = strconv.ParseFloat(string(q.p.Output), 64); err != nil {
		s.Fatal(err)
	}
	first, second := math.Mod(q.got, tailed), math.Floor(q.got/tailed)
	fine := false
	switch q.app {
	case "alone":
		fine = s.could(q.since, "m", first)
	case "rollout":
		fine = s.wasThere(q.since, first)
		s.told = append(s.told, q)
	case "hosted":
		fine = s.could(q.since, "h", first)
	case "tail":
		fine = first == q.x && s.could(q.since, "n", second)
	case "chain":
		fine = s.could(q.since, "m", first) && s.could(q.since, "n", second)
	}
	if !fine {
		s.Fatalf("%s answered %v with %v and %v (cached %v), and from then on there were\n%s", q.app, q.x, first, second, q.p.Cached, s.since(q.since))
	}
	s.count(q)
}

func (s *story) count(q *question) {
	if !q.ready {
		return
	}
	if s.tally.answered == nil {
		s.tally.answered = map[string]int{}
	}
	s.tally.answered[q.app]++
	s.tally.all++
	if q.p.Cached {
		s.tally.cached++
	}
}

// could says whether a definition was in force since a moment.
func (s *story) could(since int, model string, number float64) bool {
	return slices.ContainsFunc(s.moments[since:], func(m moment) bool { return slices.Contains(m.serves[model], number) })
}

// wasThere says whether a version of m was that definition since a moment.
func (s *story) wasThere(since int, number float64) bool {
	return slices.ContainsFunc(s.moments[since:], func(m moment) bool { return slices.Contains(m.there["m"], number) })
}

func (s *story) since(moment int) string {
	var b strings.Builder
	for i, m := range s.moments[moment:] {
		fmt.Fprintf(&b, "%d: serving %v, there %v, ready %v\n", moment+i, m.serves, m.there, m.ready)
	}
	return b.String()
}

// checkLesson looks whether what a definition has said was learned of another one: only that
// one says the label.
func (s *story) checkLesson(l *lesson) {
	if _, refused := errors.AsType[*serving.QueryError](l.err); l.err != nil && !refused && !errors.Is(l.err, serving.ErrUnavailable) && !errors.Is(l.err, serving.ErrUnjudged) {
		s.Fatal(l.err)
	}
	for i := range l.learned {
		there := s.wasThere(l.since, l.of.got)
		if !there && l.learned[i].Joined == serving.FromRecord {
			s.tally.stale++
		}
		for _, m := range l.learned[i].Models {
			switch {
			case !m.Judged || m.Loss != 0:
			case !there:
				s.Fatalf("%v learned that %v was right, which it never said\n%s", m.ModelID, l.of.got, s.since(l.since))
			default:
				s.tally.fresh++
			}
		}
	}
}

// checkState looks whether what is known of each definition comes from feedback on what it
// has said.
func (s *story) checkState() {
	key := serving.StateKey{App: "rollout", Kind: serving.PolicyVersions}
	text, _, err := s.store.LoadState(s.ctx, key)
	require.NoError(s, err)
	if text == nil {
		return
	}
	learned, err := selection.Decode(text, key.Kind)
	require.NoError(s, err)
	for i := range learned.Models {
		m := &learned.Models[i]
		right := m.Asked - m.Loss
		if right > s.right[s.number(m.Definition())] {
			s.Fatalf("%v has been right %v times, and %v pieces of feedback say so", m.Definition(), right, s.right[s.number(m.Definition())])
		}
		s.tally.learned += right
	}
}

// serve starts replicas of what is there and has none, and stops some of the others.
func (s *story) serve() {
	wanted := map[serving.Definition]*serving.Version{}
	for _, m := range s.store.Catalog().Models {
		for _, v := range m.Versions {
			if v.HostedBy == "" {
				wanted[v.Definition()] = v
			}
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
		wait.Until(s, "a replica", func() bool { return s.listed(d) })
	}
	s.note()
}
