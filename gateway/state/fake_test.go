package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// memory is a Store in memory, which can be away, slow, or say what it is asked.
type memory struct {
	mu       sync.Mutex
	texts    map[serving.StateKey]stored
	aside    map[string][]byte
	last     uint64
	away     error         // when set, every call fails with it
	slow     time.Duration // each call takes so long
	loads    int
	swaps    int
	lag      time.Duration // what is read comes so long after
	lostAcks int           // so many swaps are stored, and say that they failed
}

type stored struct {
	text     []byte
	revision uint64
}

func newMemory() *memory {
	return &memory{texts: map[serving.StateKey]stored{}, aside: map[string][]byte{}}
}

func (m *memory) enter(ctx context.Context) error {
	m.mu.Lock()
	away, slow := m.away, m.slow
	m.mu.Unlock()
	if slow > 0 {
		retry.Sleep(ctx, slow)
	}
	return errors.Join(away, ctx.Err())
}

func (m *memory) LoadState(ctx context.Context, key serving.StateKey) ([]byte, uint64, error) {
	if err := m.enter(ctx); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	m.loads++
	s, lag := m.texts[key], m.lag
	m.mu.Unlock()
	retry.Sleep(ctx, lag)
	return bytes.Clone(s.text), s.revision, nil
}

func (m *memory) SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (uint64, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[key].revision != revision {
		return 0, serving.ErrStateConflict
	}
	m.last++
	m.swaps++
	m.texts[key] = stored{bytes.Clone(text), m.last}
	if m.lostAcks > 0 {
		m.lostAcks--
		return 0, errors.New("the connection broke")
	}
	return m.last, nil
}

func (m *memory) SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (string, error) {
	if err := m.enter(ctx); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[key].revision != revision {
		return "", serving.ErrStateConflict
	}
	as := fmt.Sprintf("aside:%d", revision)
	m.aside[as] = m.texts[key].text
	delete(m.texts, key)
	return as, nil
}

// set changes how the store behaves.
func (m *memory) set(change func(m *memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// put stores a text as another gateway would.
func (m *memory) put(key serving.StateKey, text []byte) {
	m.set(func(m *memory) {
		m.last++
		m.texts[key] = stored{text, m.last}
	})
}

// state reads what is stored, or nil.
func (m *memory) state(t testing.TB, key serving.StateKey) *selection.State {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.texts[key]
	if !ok {
		return nil
	}
	state, err := selection.Decode(s.text, key.Kind)
	if err != nil {
		t.Fatalf("what is stored for %+v: %v", key, err)
	}
	return state
}

// counting is a learner that counts in Count and Sum. Feedback of the queries below
// zero makes it fail in several ways.
type counting struct{ kind string }

const (
	panicking  = -1
	infinite   = -2
	forgetting = -3
	unmoved    = -4
)

func (l counting) New(models []serving.ModelID) *selection.State {
	return selection.NewState(l.kind, models)
}

func (counting) Train(s *selection.State, f *selection.Feedback) *selection.State {
	next := s.Clone()
	switch f.QueryID {
	case panicking:
		panic("division by zero")
	case infinite:
		next.Numbers = append(next.Numbers, math.Inf(1))
	case forgetting:
		return nil
	case unmoved:
		return s
	}
	for _, o := range f.Outcomes {
		if at := next.Find(o.Model); at >= 0 {
			next.Models[at].Count++
			next.Models[at].Sum += o.Loss
		}
	}
	return next
}

// AddModel begins in the middle of the others.
func (counting) AddModel(s *selection.State, id serving.ModelID) *selection.State {
	next := s.Clone()
	total := 0.0
	for i := range s.Models {
		total += s.Models[i].Count
	}
	next.Insert(selection.ModelState{ModelID: id, Count: total / max(1, float64(len(s.Models)))})
	return next
}

// UpdateVersion halves the count.
func (counting) UpdateVersion(s *selection.State, id serving.ModelID) *selection.State {
	next := s.Clone()
	at := next.Find(id.Model)
	next.Models[at].ModelID = id
	next.Models[at].Count /= 2
	return next
}

func (counting) Explain(s *selection.State) []selection.Standing {
	list := make([]selection.Standing, len(s.Models))
	for i := range list {
		list[i].Worth = s.Models[i].Count
	}
	return list
}

func (counting) Select(*selection.State, *selection.Query, []selection.Candidate, *selection.Plan) {}

func (counting) Combine(*selection.State, *selection.Plan, []selection.Answer, selection.Moment) selection.Decision {
	return selection.Decision{}
}

// watching is counting, and an Observer that notes how many answers it saw, when it
// began, and whose answer failed last.
type watching struct{ counting }

func (watching) Observe(s *selection.State, tallies []selection.Tally, now time.Time) *selection.State {
	if len(tallies) == 0 && s.Numbers != nil {
		return s
	}
	next := s.Clone()
	if next.Numbers == nil {
		next.Numbers = []float64{float64(now.Unix()), 0}
	}
	for _, t := range tallies {
		next.Numbers[1] += t.Answers
		next.Note = ""
		if t.Failures > 0 {
			next.Note = "version " + t.Version + " was withdrawn. "
		}
	}
	return next
}

var (
	oneV1   = serving.ModelID{Model: "one", Version: "1"}
	oneV2   = serving.ModelID{Model: "one", Version: "2"}
	twoV1   = serving.ModelID{Model: "two", Version: "1"}
	threeV1 = serving.ModelID{Model: "three", Version: "1"}
)

const kind = serving.PolicyExp4

// newApp is an app with a scope that counts.
func newApp(scope string, models ...serving.ModelID) *App {
	return NewApp("digits", serving.PolicySpec{Kind: kind, Scope: scope}, counting{kind}, defined("", models...))
}

// defined are versions as a generation has them.
func defined(generation string, models ...serving.ModelID) (list []serving.Definition) {
	for _, id := range models {
		list = append(list, serving.Definition{ModelID: id, Generation: generation})
	}
	return list
}

func keyOf(user, context string) serving.StateKey {
	return serving.StateKey{App: "digits", Kind: kind, User: user, Context: context}
}

// textOf is a stored state in which the models have been counted so often.
func textOf(t testing.TB, count float64, models ...serving.ModelID) []byte {
	t.Helper()
	s := selection.NewState(kind, models)
	s.Steps = count
	for i := range s.Models {
		s.Models[i].Count = count
	}
	text, err := s.Encode()
	require.NoError(t, err)
	return text
}

// feedback says that each model was wrong by a loss.
func feedback(query int64, loss float64, models ...serving.ModelID) *selection.Feedback {
	f := &selection.Feedback{QueryID: query, Loss: loss}
	for _, id := range models {
		f.Outcomes = append(f.Outcomes, selection.Outcome{ModelID: id, Loss: loss, Judged: true})
	}
	return f
}

// gateway is a States that runs until the test ends.
type gateway struct {
	*States
	journal  *journal.Journal
	registry *obs.Registry
	stop     func() error
}

func start(t testing.TB, store Store) *gateway {
	g := &gateway{journal: &journal.Journal{}, registry: obs.NewRegistry()}
	g.States = New(store, slog.New(slog.NewTextHandler(g.journal, nil)), g.registry)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	g.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = g.stop() })
	return g
}

// bubble runs a test with a gateway whose time is not real.
func bubble(t *testing.T, run func(t *testing.T, m *memory, g *gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		run(t, m, start(t, m))
	})
}

// metric reads a metric of the gateway.
func (g *gateway) metric(t testing.TB, name string) float64 {
	t.Helper()
	w := httptest.NewRecorder()
	g.registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	found := regexp.MustCompile(`(?m)^topsail_selection_state_` + name + ` (\S+)$`).FindSubmatch(w.Body.Bytes())
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	x, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return x
}

// count is how often a model has been counted in a state.
func count(t testing.TB, s *selection.State, model string) float64 {
	t.Helper()
	at := s.Find(model)
	if at < 0 {
		t.Fatalf("model %s is not in the state", model)
	}
	return s.Models[at].Count
}
