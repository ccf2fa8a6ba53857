package predict

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

const (
	slo    = 100 * time.Millisecond
	margin = 500 * time.Microsecond // of that SLO
)

// What dispatch does, by its documentation.
const (
	firstFew      = 4 // questions that go to a replica that has just come
	wakeEvery     = time.Second
	wakeWithin    = 2 * time.Second
	maxWakes      = 256 // versions that wait for their first wake
	loadEvery     = 100 * time.Millisecond
	orphanAfter   = time.Second           // a question is given up that nobody waits for
	maxHeldShare  = 2                     // of what may be held: the part of one version
	questionBytes = 512                   // that one takes that is held, beside its input
	refusedPause  = 10 * time.Millisecond // after a refusal by an only replica
	maxRefusals   = 4                     // of a question, by replicas that are stopping
	extraEvery    = 20                    // calls for an extra one
	extraSaved    = 256                   // extra calls that can be saved up
)

// rig is a predictor with replicas that the test plays.
type rig struct {
	testing.TB
	p        *Predictor
	cache    *cache.Cache
	table    *route.Table
	registry *obs.Registry
	log      *slog.Logger
	settle   func() // waits until nothing moves
	began    time.Time
	maxFrame uint32 // of replicas that come

	lists chan []serving.Endpoint
	ctx   context.Context
	all   sync.WaitGroup

	mu       sync.Mutex // guards the following
	replicas []*fake
}

// bubble runs a test with a rig in a bubble, over pipes. What the predictor leaves
// in flight or running fails it.
func bubble(t *testing.T, run func(t *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, stop := newRig(t, synctest.Wait)
		run(r)
		stop()
		time.Sleep(time.Minute) // whatever happens at last has happened
		if n := r.cache.Open(); n != 0 {
			t.Errorf("%d questions are still open in the end", n)
		}
	})
}

func newRig(t testing.TB, settle func()) (r *rig, stop func()) {
	ctx, stopFakes := context.WithCancel(context.Background())
	routing, cancel := context.WithCancel(ctx)
	log := slog.New(slog.DiscardHandler)
	r = &rig{TB: t, cache: cache.New(1 << 20), registry: obs.NewRegistry(), log: log, settle: settle, began: time.Now(), maxFrame: rpc.MaxFrame, lists: make(chan []serving.Endpoint), ctx: ctx}
	r.table = route.NewTable("test", r, log)
	r.table.Dial = r.dial
	ids := NewIDs(ctx, nil, log)
	r.p = New(r.cache, dispatch.New(r.table, r.registry), ids, untaught{}, NewMetrics(r.registry))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.table.Run(routing) }()
	return r, func() {
		cancel()
		<-ended // before the fakes: nobody reads what two say at once when both leave a pipe
		stopFakes()
		r.all.Wait()
		ids.Close()
		r.cache.Close()
	}
}

// untaught gives policies the state before any feedback.
type untaught struct{}

func (untaught) Get(a *state.App, _, _ string) *selection.State { return a.Fresh() }

// Watch implements route.Resolver.
func (r *rig) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	for {
		select {
		case list := <-r.lists:
			update(list)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *rig) dial(_ context.Context, addr string) (net.Conn, error) {
	r.mu.Lock()
	i := slices.IndexFunc(r.replicas, func(f *fake) bool { return f.name == addr })
	r.mu.Unlock()
	if i < 0 || r.replicas[i].ctx.Err() != nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	r.all.Go(func() { r.replicas[i].serve(far) })
	return near, nil
}

// fake is a sidecar that behaves as the test says.
type fake struct {
	name     string
	versions []serving.Definition
	behave   behaviour
	service  time.Duration // that it says the model took
	wait     time.Duration // that it says a new question would wait
	maxFrame uint32
	ctx      context.Context
	kill     context.CancelFunc
	hold     func(f *fake, v rpc.Load)                          // of a host; nil: it is none
	streams  func(q arrival, parts bool, send func(rpc.Answer)) // nil, or in place of behave: on a goroutine of its own

	mu      sync.Mutex // guards the following
	loads   []rpc.Load
	asked   []arrival
	cancels int
	conns   []*rpc.Conn // that were ever open
}

// arrival is a question as it reached a replica.
type arrival struct {
	x       float64 // the input's first number
	text    string  // the input, of a version that takes strings
	version serving.ModelID
	at      time.Time
	budget  time.Duration
	user    string
	class   serving.Class
}

// behaviour says what the answer to a question is, and how long after it.
type behaviour func(q arrival) (a rpc.Answer, after time.Duration)

// never is longer than any test.
const never = 1 << 62

// echoes answers with the input's first number.
func echoes(after time.Duration) behaviour {
	return func(q arrival) (rpc.Answer, time.Duration) { return number(q.x), after }
}

func silent(arrival) (rpc.Answer, time.Duration) { return rpc.Answer{}, never }

func fails(status rpc.Status, message string) behaviour {
	return func(arrival) (rpc.Answer, time.Duration) {
		return rpc.Answer{Status: status, Message: []byte(message)}, 0
	}
}

func number(x float64) rpc.Answer {
	return rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Number(x))}
}

// replica adds a replica that is ready for the versions.
func (r *rig) replica(name string, behave behaviour, versions ...serving.ModelID) *fake {
	r.Helper()
	return r.runs(name, behave, definitions("", versions...)...)
}

// definitions are those of a generation.
func definitions(generation string, ids ...serving.ModelID) (list []serving.Definition) {
	for _, id := range ids {
		list = append(list, serving.Definition{ModelID: id, Generation: generation})
	}
	return list
}

// runs is replica, for definitions of versions.
func (r *rig) runs(name string, behave behaviour, versions ...serving.Definition) *fake {
	r.Helper()
	f := &fake{name: name, behave: behave, versions: versions, maxFrame: r.maxFrame}
	f.ctx, f.kill = context.WithCancel(r.ctx)
	r.mu.Lock()
	r.replicas = append(r.replicas, f)
	r.mu.Unlock()
	r.resolve()
	return f
}

// stop kills a replica, and takes it off the list.
func (r *rig) stop(f *fake) {
	f.kill()
	r.settle()
	r.mu.Lock()
	r.replicas = slices.DeleteFunc(slices.Clone(r.replicas), func(g *fake) bool { return f == g })
	r.mu.Unlock()
	r.resolve()
}

func (r *rig) resolve() {
	var list []serving.Endpoint
	for _, f := range r.replicas {
		list = append(list, serving.Endpoint{Replica: f.name, Addr: f.name})
	}
	r.lists <- list
	r.settle()
}

// ready waits until so many replicas are ready for a version, in real time.
func (r *rig) ready(id serving.ModelID, replicas int) {
	r.Helper()
	wait.Until(r, fmt.Sprintf("%d replicas of %v", replicas, id), func() bool { return r.table.Group(serving.Definition{ModelID: id}).Len() == replicas })
}

func (f *fake) serve(nc net.Conn) {
	mine := rpc.Hello{Role: rpc.RoleSidecar, MaxFrame: f.maxFrame, Features: rpc.FeatureApps}
	if f.hold != nil {
		mine.Features |= rpc.FeatureHost
	}
	conn, err := rpc.Accept(f.ctx, nc, mine, nil)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.conns = append(f.conns, conn)
	f.mu.Unlock()
	f.announce(rpc.StateReady)
	_ = conn.Run(f.ctx, func(frame rpc.Frame) error { return f.handle(conn, frame) })
}

// announce says how the versions are doing.
func (f *fake) announce(s rpc.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		for i, v := range f.versions {
			_ = conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: uint32(i), State: s, Model: v.ModelID, Generation: v.Generation}))
		}
	}
}

func (f *fake) handle(conn *rpc.Conn, frame rpc.Frame) error {
	if frame.Kind == rpc.KindCancel {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.cancels++
		return nil
	}
	if frame.Kind == rpc.KindLoad {
		return f.load(frame)
	}
	p, err := rpc.ParsePredict(frame)
	if err != nil {
		return err
	}
	var ask rpc.Ask
	p.Next(&ask)
	values, err := rpc.ParsePayload(ask.Payload)
	if err != nil {
		return err
	}
	q := arrival{version: f.version(p.Model), at: time.Now(), budget: ask.Budget, user: string(ask.User)}
	q.class = serving.Class{App: string(ask.App), Priority: int(ask.Priority), Weight: float64(ask.Weight), MinShare: float64(ask.MinShare)}
	q.text = string(values[0].Data)
	if len(values[0].Data) >= 8 {
		q.x = math.Float64frombits(binary.LittleEndian.Uint64(values[0].Data))
	}
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	if f.streams != nil {
		parts := ask.Bits&rpc.AskParts != 0
		go f.streams(q, parts, func(a rpc.Answer) {
			b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Count: 1})
			_ = conn.End(rpc.AppendAnswer(b, &a), 0)
		})
		return nil
	}
	answer, after := f.behave(q)
	reply := func() {
		b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Wait: f.wait, Service: f.service, Count: 1})
		_ = conn.End(rpc.AppendAnswer(b, &answer), 0)
	}
	switch {
	case after == never:
	case after == 0:
		reply()
	default:
		time.AfterFunc(after, reply)
	}
	return nil
}

// questions are those that reached the replica.
func (f *fake) questions() []arrival {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fake) cancelled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancels
}

// serves registers one app, linked to one model with these versions, of which the
// last is current.
func (r *rig) serves(change func(a *serving.App), versions ...serving.ModelID) {
	r.Helper()
	a := newApp("app", versions[0].Model)
	if change != nil {
		change(a)
	}
	r.set(newCatalog([]*serving.App{a}, newModel(versions...)))
}

func (r *rig) set(cat *serving.Catalog) {
	r.Helper()
	require.NoError(r, r.p.SetCatalog(cat))
}

func newApp(name string, models ...string) *serving.App {
	return &serving.App{Name: name, InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(slo), Models: models}
}

// newModel has versions of doubles, of which the last is current.
func newModel(versions ...serving.ModelID) *serving.Model {
	m := &serving.Model{Name: versions[0].Model, Current: versions[len(versions)-1].Version, Versions: map[string]*serving.Version{}}
	for _, v := range versions {
		m.Versions[v.Version] = &serving.Version{ModelID: v, InputType: serving.Doubles}
	}
	return m
}

func newCatalog(apps []*serving.App, models ...*serving.Model) *serving.Catalog {
	cat := &serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}}
	for _, a := range apps {
		cat.Apps[a.Name] = a
	}
	for _, m := range models {
		cat.Models[m.Name] = m
	}
	return cat
}

func id(model, version string) serving.ModelID {
	return serving.ModelID{Model: model, Version: version}
}

var m1 = id("m", "1")

func doubles(xs ...float64) serving.Input {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return serving.Input{Type: serving.Doubles, Data: b}
}

// query asks the app "app", now.
func newQuery(xs ...float64) *serving.Query {
	return &serving.Query{App: "app", Input: doubles(xs...), Received: time.Now()}
}

// one predicts a query alone.
func one(ctx context.Context, p *Predictor, q *serving.Query) (a serving.Prediction, err error) {
	answers, err := p.Predict(ctx, *q)
	if err == nil {
		a = answers[0]
	}
	return a, err
}

// predict asks, and says how long it took.
func (r *rig) predict(q *serving.Query) (serving.Prediction, time.Duration) {
	r.Helper()
	start := time.Now()
	a, err := one(context.Background(), r.p, q)
	if err != nil {
		r.Errorf("predict: %v", err)
	}
	return a, time.Since(start)
}

// wantOutput compares a prediction with the number that it should be.
func (r *rig) wantOutput(a serving.Prediction, x float64) {
	r.Helper()
	if a.Default || a.Cause != serving.OK || a.Explanation != "" || string(a.Output) != jsonOf(x) {
		r.Errorf("got %s (default %v: %v, %s), want %s", a.Output, a.Default, a.Cause, a.Explanation, jsonOf(x))
	}
}

func (r *rig) wantDefault(a serving.Prediction, cause serving.Cause) {
	r.Helper()
	if !a.Default || a.Cause != cause || a.Explanation == "" || a.Cached || string(a.Output) != "-1" {
		r.Errorf("got %+v (%s), want the default because of %v", a, a.Output, cause)
	}
}

func jsonOf(x float64) string {
	out, err := serving.NewOutput(serving.Number(x))
	if err != nil {
		return err.Error()
	}
	return string(out.JSON)
}

// page is the metrics page.
func (r *rig) page() string {
	w := httptest.NewRecorder()
	r.registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// metric reads one sample of the metrics page; -1: there is none.
func (r *rig) metric(name string) float64 {
	r.Helper()
	for line := range strings.Lines(r.page()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(r, err)
			return x
		}
	}
	return -1
}
