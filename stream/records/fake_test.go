package records

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/require"
)

// scorer answers by a function, and knows some apps.
type scorer struct {
	answer   func(ctx context.Context, q *serving.Query) (serving.Prediction, error)
	replicas int // 0: 1

	mu      sync.Mutex
	apps    map[string]*serving.App // nil: there is no catalog
	queries []serving.Query
	now     int // asked at present
	most    int // asked at a time
	ids     atomic.Int64
}

// newScorer has the app "double", which takes doubles, and "length", which takes strings.
func newScorer(answer func(ctx context.Context, q *serving.Query) (serving.Prediction, error)) *scorer {
	return &scorer{answer: answer, apps: map[string]*serving.App{
		"double": {Name: "double", InputType: serving.Doubles, Models: []string{"m"}},
		"length": {Name: "length", InputType: serving.Strings, Models: []string{"m"}},
	}}
}

func (s *scorer) App(name string) (*serving.App, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apps == nil {
		return nil, serving.ErrNoCatalog
	}
	if a := s.apps[name]; a != nil {
		return a, nil
	}
	return nil, serving.ErrUnknownApp
}

func (s *scorer) set(apps map[string]*serving.App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps = apps
}

func (s *scorer) Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error) {
	q := &qs[0]
	if _, err := s.App(q.App); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.queries = append(s.queries, *q)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	p, err := s.answer(ctx, q)
	p.QueryID = s.ids.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	return []serving.Prediction{p}, err
}

// Capacity is that of replicas which are never busy.
func (s *scorer) Capacity(string) (int, time.Duration) { return max(s.replicas, 1), 0 }

func (s *scorer) asked() []serving.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

// double answers twice the number, or how long the text is.
func double(_ context.Context, q *serving.Query) (serving.Prediction, error) {
	x := float64(len(q.Input.Data))
	if q.Input.Type == serving.Doubles {
		x = 2 * math.Float64frombits(binary.LittleEndian.Uint64(q.Input.Data))
	}
	return serving.Prediction{Output: fmt.Appendf(nil, "%v", x), Model: serving.ModelID{Model: "m", Version: "1"}}, nil
}

func missing(cause serving.Cause) serving.Prediction {
	f := serving.Failure{Cause: cause}
	return serving.Prediction{Output: []byte("-1"), Default: true, Cause: cause, Explanation: f.Explain()}
}

// jsonRecord asks for twice a number.
func jsonRecord(id string, x float64) serving.StreamMessage {
	return serving.StreamMessage{Stream: "in", Key: []byte("key of " + id), Value: fmt.Appendf(nil, `{"uuid": %q, "input": [%v]}`, id, x)}
}

func protobufRecord(id string, x float64) serving.StreamMessage {
	r := Request{UUID: id, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))}
	return serving.StreamMessage{Stream: "in", Key: []byte("key of " + id), Value: r.AppendProtobuf(nil)}
}

// run makes a job and runs it until the function returns that it gives back.
func run(t testing.TB, broker *memory, s Scorer, change func(*Config)) (*Job, *member, func()) {
	t.Helper()
	c := broker.join()
	cfg := Config{Scorer: s, App: "double", Config: stream.Config{
		Name: "job", Consumer: c, Streams: broker.inputs, Output: "out", DeadLetter: "dead", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	if change != nil {
		change(&cfg)
	}
	j, err := New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := j.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop := func() {
		cancel()
		running.Wait()
		c.Close()
	}
	t.Cleanup(stop)
	return j, c, stop
}

// settled waits until the job waits for records, within a bubble.
func settled(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// results are those of a stream, each by its id; there must not be two of one.
func results(t testing.TB, broker *memory, name string) map[string]Response {
	t.Helper()
	all := map[string]Response{}
	for _, r := range broker.read(name) {
		format, err := stream.FormatOf(r.Header(stream.HeaderContentType), r.Value)
		require.NoError(t, err)
		response, err := ParseResponse(r.Value, format)
		require.NoError(t, err)
		if _, twice := all[response.UUID]; twice {
			t.Errorf("two results of %s", response.UUID)
		}
		all[response.UUID] = response
	}
	return all
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
