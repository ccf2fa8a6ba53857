package feedback

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/predict"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// rig is a gateway's parts for feedback, with one replica that the test plays.
type rig struct {
	testing.TB
	*Joiner
	p        *predict.Predictor
	cache    *cache.Cache
	registry *obs.Registry
	logged   *bytes.Buffer
	store    *store
	behave   func(model string, x float64) (y float64, after time.Duration)
	asked    []string // by the replica, under store.mu
}

// bubble runs a test with a rig in a bubble: its app "app" has the models a, b and c.
func bubble(t *testing.T, change func(a *serving.App), run func(t *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		r := newRig(t, ctx, &all, newStore())
		r.serves(change)
		synctest.Wait()
		run(r)
		stop()
		all.Wait()
		r.cache.Close()
	})
}

// newRig is one gateway on a store.
func newRig(t testing.TB, ctx context.Context, all *sync.WaitGroup, store *store) *rig {
	r := &rig{TB: t, registry: obs.NewRegistry(), logged: &bytes.Buffer{}, store: store, cache: cache.New(1 << 20)}
	r.behave = func(_ string, x float64) (float64, time.Duration) { return x, 0 }
	log := slog.New(slog.NewTextHandler(r.logged, nil))
	table := route.NewTable("test", r, log)
	table.Dial = func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		all.Go(func() { r.serve(ctx, far) })
		return near, nil
	}
	ids := predict.NewIDs(ctx, nil, log)
	states := state.New(store, log, r.registry)
	recorder := NewRecorder(store, log, r.registry)
	r.p = predict.New(r.cache, dispatch.New(table, r.registry), ids, states, predict.NewMetrics(r.registry))
	r.p.Records = recorder
	r.Joiner = NewJoiner(r.p, states, recorder, log, r.registry)
	for _, run := range []func(context.Context) error{table.Run, states.Run, recorder.Run} {
		all.Go(func() { _ = run(ctx) })
	}
	all.Go(func() { <-ctx.Done(); ids.Close() })
	return r
}

// Watch implements route.Resolver.
func (r *rig) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	update([]serving.Endpoint{{Replica: "r", Addr: "r"}})
	<-ctx.Done()
	return ctx.Err()
}

var models = []string{"a", "b", "c"}

// serve is the replica.
func (r *rig) serve(ctx context.Context, nc net.Conn) {
	conn, err := rpc.Accept(ctx, nc, rpc.Hello{Role: rpc.RoleSidecar, MaxFrame: rpc.MaxFrame}, nil)
	if err != nil {
		return
	}
	for i, model := range models {
		_ = conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: uint32(i), State: rpc.StateReady, Model: id(model)}))
	}
	_ = conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: uint32(len(models)), State: rpc.StateReady, Model: id("a"), Generation: "b"}))
	_ = conn.Run(ctx, func(f rpc.Frame) error {
		if f.Kind != rpc.KindPredict {
			return nil
		}
		p, err := rpc.ParsePredict(f)
		if err != nil {
			return err
		}
		var ask rpc.Ask
		p.Next(&ask)
		values, err := rpc.ParsePayload(ask.Payload)
		if err != nil {
			return err
		}
		model := append(models, "a, redefined")[p.Model]
		r.store.mu.Lock()
		r.asked = append(r.asked, model)
		y, after := r.behave(model, math.Float64frombits(binary.LittleEndian.Uint64(values[0].Data)))
		r.store.mu.Unlock()
		answer := rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Number(y))}
		time.AfterFunc(after, func() {
			b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Count: 1})
			_ = conn.End(rpc.AppendAnswer(b, &answer), 0)
		})
		return nil
	})
}

// behaves says what models answer from now on.
func (r *rig) behaves(behave func(model string, x float64) (y float64, after time.Duration)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.behave, r.asked = behave, nil
}

// calls is how often the replica was asked since.
func (r *rig) calls() int {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return len(r.asked)
}

func (r *rig) serves(change func(a *serving.App)) {
	r.Helper()
	r.defines("", change)
}

// defines is serves, with a generation of model a.
func (r *rig) defines(generation string, change func(a *serving.App)) {
	r.Helper()
	a := &serving.App{
		Name: "app", InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(100 * time.Millisecond), Models: models,
		Policy: serving.PolicySpec{Kind: serving.PolicyExp4},
	}
	if change != nil {
		change(a)
	}
	cat := &serving.Catalog{Apps: map[string]*serving.App{"app": a}, Models: map[string]*serving.Model{}}
	for _, model := range models {
		cat.Models[model] = &serving.Model{Name: model, Current: "1", Versions: map[string]*serving.Version{
			"1": {ModelID: id(model), InputType: serving.Doubles},
		}}
	}
	if len(a.Stages) > 0 {
		cat.Apps["inner"] = &serving.App{Name: "inner", InputType: serving.Doubles, SLO: a.SLO, Models: models, Policy: serving.PolicySpec{Kind: serving.PolicyExp4}}
	}
	cat.Models["a"].Versions["1"].Generation = generation
	require.NoError(r, r.p.SetCatalog(cat))
}

func id(model string) serving.ModelID { return serving.ModelID{Model: model, Version: "1"} }

func input(x float64) serving.Input {
	return serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))}
}

// says is an output as clients write it.
func says(t testing.TB, text string) *serving.Output {
	t.Helper()
	out := parse([]byte(text))
	if out == nil {
		t.Fatalf("%s is not valid JSON", text)
	}
	return out
}

// predict asks for user ann.
func (r *rig) predict(x float64) serving.Prediction {
	r.Helper()
	ps, err := r.p.Predict(r.Context(), serving.Query{App: "app", User: "ann", Input: input(x)})
	require.NoError(r, err)
	return ps[0]
}

// learn hands over one piece of feedback on the app.
func (r *rig) learn(f serving.Feedback) (serving.Learned, error) {
	r.Helper()
	f.App = "app"
	list, err := r.Feedback(r.Context(), []serving.Feedback{f})
	if err != nil {
		return serving.Learned{}, err
	}
	if len(list) != 1 {
		r.Fatalf("%d answers to one piece of feedback", len(list))
	}
	return list[0], nil
}

// must is learn where nothing may go wrong.
func (r *rig) must(f serving.Feedback) serving.Learned {
	r.Helper()
	l, err := r.learn(f)
	require.NoError(r, err)
	return l
}

// steps is how much the app's state has learned.
func (r *rig) steps() float64 {
	r.Helper()
	s, _, err := r.states.Explain(r.Context(), r.p.Learning("app"), "", "")
	require.NoError(r, err)
	return s.Steps
}

// metric reads one sample of the metrics page; -1: there is none.
func (r *rig) metric(name string) float64 {
	r.Helper()
	w := httptest.NewRecorder()
	r.registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(r, err)
			return x
		}
	}
	return -1
}

// store is what gateways share: records and states in memory, which can be away.
type store struct {
	*inprocess.Records

	mu     sync.Mutex // guards the following
	away   error      // of everything
	slow   time.Duration
	puts   int
	texts  map[serving.StateKey][]byte
	number map[serving.StateKey]uint64
}

func newStore() *store {
	return &store{Records: inprocess.NewRecords(), texts: map[serving.StateKey][]byte{}, number: map[serving.StateKey]uint64{}}
}

var errAway = errors.New("the store is unavailable")

// is changes how the store is.
func (s *store) is(away error, slow time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.slow = away, slow
}

func (s *store) enter(ctx context.Context) error {
	s.mu.Lock()
	away, slow := s.away, s.slow
	s.mu.Unlock()
	if slow > 0 {
		retry.Sleep(ctx, slow)
	}
	return errors.Join(away, context.Cause(ctx))
}

func (s *store) PutRecords(ctx context.Context, list []*serving.Record) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.puts++
	s.mu.Unlock()
	return s.Records.PutRecords(ctx, list)
}

func (s *store) RecordOf(ctx context.Context, app string, queryID int64) (*serving.Record, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	return s.Records.RecordOf(ctx, app, queryID)
}

func (s *store) NewestRecord(ctx context.Context, app, user, context string, input serving.InputHash) (*serving.Record, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	return s.Records.NewestRecord(ctx, app, user, context, input)
}

func (s *store) LoadState(ctx context.Context, key serving.StateKey) ([]byte, uint64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[key], s.number[key], nil
}

func (s *store) SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (uint64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number[key] != revision {
		return 0, serving.ErrStateConflict
	}
	s.texts[key], s.number[key] = text, revision+1
	return revision + 1, nil
}

func (s *store) SetStateAside(context.Context, serving.StateKey, uint64, string) (string, error) {
	return "", errors.New("nothing is corrupt here")
}

// outcome is how a model did, for short.
func outcome(l *serving.Learned, model string) (loss float64, judged bool) {
	for _, m := range l.Models {
		if m.Model == model {
			return m.Loss, m.Judged
		}
	}
	return -1, false
}
