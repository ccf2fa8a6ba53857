package stream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// consumer has records, in batches, as many as are asked for.
type consumer struct {
	mu        sync.Mutex
	waiting   int
	came      int
	polls     int
	commits   []error                                    // of the next commits; nil, when there are none left
	last      []serving.StreamMessage                    // that were to be produced
	refuse    func(i int, m serving.StreamMessage) error // nil: nothing is refused
	committed []serving.StreamMessage
	lost      chan struct{} // closed when what is in flight is another member's
	more      chan struct{}
}

func newConsumer(waiting int) *consumer {
	return &consumer{waiting: waiting, more: make(chan struct{}, 1), lost: make(chan struct{})}
}

func (c *consumer) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for {
		c.mu.Lock()
		n := min(c.waiting, most)
		c.waiting -= n
		c.polls++
		records := make([]serving.StreamRecord, n)
		for i := range records {
			c.came++
			records[i].Value, records[i].Lost = []byte(strconv.Itoa(c.came)), c.lost
		}
		c.mu.Unlock()
		if n > 0 {
			return records, nil
		}
		select {
		case <-c.more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *consumer) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += n
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *consumer) Commit(_ context.Context, results []serving.StreamResult) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
	for i, r := range results {
		c.last = append(c.last, r.Messages...)
		for _, m := range r.Messages {
			if c.refuse == nil {
				continue
			}
			if err := c.refuse(i, m); err != nil {
				return nil, err
			}
		}
	}
	if len(c.commits) > 0 {
		err := c.commits[0]
		c.commits = c.commits[1:]
		if errors.Is(err, serving.ErrRecordsLost) {
			close(c.lost)
			c.lost = make(chan struct{})
		}
		if err != nil {
			return nil, err
		}
	}
	c.committed = append(c.committed, c.last...)
	return nil, nil
}

func (c *consumer) Close() error { return nil }

// work is a Handler by a function.
type work struct {
	handle    func(ctx context.Context, it *Item) error
	committed int
}

// said is a message, which is its own id.
type said struct{ results [1]Result }

func (s *said) ID() (id, checksum string)     { return string(s.results[0].Value), "" }
func (s *said) Prepare(context.Context) error { return nil }
func (s *said) Results() []Result             { return s.results[:] }

func (w *work) Parse(r *serving.StreamRecord, _ Format) (Message, error) {
	return &said{[1]Result{{Value: r.Value}}}, nil
}
func (w *work) Handle(ctx context.Context, it *Item, done func(error)) {
	go func() { done(w.handle(ctx, it)) }()
}
func (w *work) Waited() time.Duration   { return 0 }
func (w *work) Committed(items []*Item) { w.committed += len(items) }

func testKind() Kind {
	return Kind{
		Stream: "stream", TooLarge: "too_large", Reasons: []Reason{"too_large"}, Metrics: "test_",
		Gauge: Gauge{Name: "own", Help: "H.", Value: func(*Job, Handler) float64 { return 7 }},
	}
}

type large int

func (l large) Error() string { return "too large" }
func (l large) TooLarge() int { return int(l) }

// run runs a job until stop.
func run(t *testing.T, c *consumer, catalog Catalog, handle func(ctx context.Context, it *Item) error) (j *Job, w *work, metric func(name string) float64, stop func()) {
	t.Helper()
	registry := obs.NewRegistry()
	w = &work{handle: handle}
	j, err := New(Config{Name: "s", Consumer: c, Catalog: catalog, Output: "out", DeadLetter: "dead", Batch: 4, Drain: time.Second}, testKind(), NewMetrics(registry, testKind()), w)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := j.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return j, w, func(name string) float64 { return gathered(t, registry, name) }, stop
}

// gathered is the sum of a metric, over all its labels.
func gathered(t *testing.T, r *obs.Registry, name string) (sum float64) {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// TestCommits goes on after each failure: what is lost is forgotten, and what is not is committed again.
func TestCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsumer(10)
		c.commits = []error{serving.ErrRecordsLost, large(0), errors.New("away"), nil}
		j, w, metric, stop := run(t, c, nil, func(context.Context, *Item) error { return nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		var results, dead int
		for _, m := range c.committed {
			switch m.Stream {
			case "out":
				results++
			case "dead":
				dead++
			}
		}
		lost := 10 - results - dead
		if lost < 1 || lost > 4 || dead != 1 {
			t.Errorf("it committed %d results and %d dead letters", results, dead)
		}
		stop()
		status, tally := j.Status()
		if w.committed != 10-lost || tally.Records != uint64(10-lost) || tally.DeadLetters != 1 || status.LastPlace == "" || status.LastCommit == nil || status.InFlight != 0 {
			t.Errorf("%d committed, %+v, %+v", w.committed, status, tally)
		}
		if metric("test_lost_batches_total") != 1 || metric("test_failures_total") != 1 || metric("test_own") != 7 || status.Lost != 1 || j.Ready() != nil {
			t.Errorf("%v lost, %v failures, %v", metric("test_lost_batches_total"), metric("test_failures_total"), j.Ready())
		}
	})
}

// TestTooLarge has a result become a dead letter, and that shorter, until the broker takes it.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, refused := newConsumer(3), 0
		c.refuse = func(i int, m serving.StreamMessage) error {
			switch {
			case string(m.Value) != "2" || refused == 3:
				return nil
			case refused == 2:
				i = 7 // there is none
			}
			refused++
			return large(i)
		}
		j, _, metric, _ := run(t, c, nil, func(context.Context, *Item) error { return nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		dead := 0
		for _, m := range c.committed {
			if m.Stream == "dead" {
				dead++
			}
		}
		if _, tally := j.Status(); len(c.committed) != 3 || dead != 1 || tally.DeadLetters != 1 || tally.Records != 3 {
			t.Errorf("it committed %+v, %+v", c.committed, tally)
		}
		if metric("test_failures_total") != 1 || metric("test_dead_letters_total") != 1 {
			t.Errorf("%v failures, %v dead letters", metric("test_failures_total"), metric("test_dead_letters_total"))
		}
	})
}

// catalogs is a Catalog that changes when a test says so.
type catalogs chan *serving.Catalog

func (c catalogs) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	for {
		select {
		case cat := <-c:
			fn(cat)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TestGate has nothing polled while it is closed, nor before it is known whether it is.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, catalogs, worked := newConsumer(1), make(catalogs), new(atomic.Int64)
		j, _, metric, stop := run(t, c, catalogs, func(context.Context, *Item) error {
			worked.Add(1)
			return nil
		})
		defer stop()
		stream := func(s *serving.Suspension) *serving.Catalog {
			return &serving.Catalog{Streams: map[string]*serving.Stream{"s": {Name: "s", Suspension: s}}}
		}
		expect := func(what string, polls bool, want int) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if (c.polls > 0) != polls || int(worked.Load()) != want {
				t.Errorf("%s: %d polls, %d records", what, c.polls, worked.Load())
			}
		}
		expect("nothing is known", false, 0)
		catalogs <- &serving.Catalog{}
		expect("not suspended", true, 1)
		suspension := &serving.Suspension{Reason: "r"}
		catalogs <- stream(suspension)
		synctest.Wait()
		c.polls = 0
		c.add(2)
		expect("suspended", false, 1)
		if status, _ := j.Status(); status.Suspended != suspension || metric("test_failures_total") != 0 {
			t.Errorf("%+v, %v failures", status.Suspended, metric("test_failures_total"))
		}
		catalogs <- stream(suspension) // the same again
		expect("still suspended", false, 1)
		catalogs <- stream(nil)
		expect("resumed", true, 3)
		catalogs <- &serving.Catalog{}
		c.add(1)
		expect("deleted", true, 4)
	})
}

// TestEnd finishes what is in flight, for as long as Drain.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ended := newConsumer(1), time.Duration(0)
		j, _, _, stop := run(t, c, nil, func(ctx context.Context, _ *Item) error {
			<-ctx.Done()
			return ctx.Err()
		})
		time.Sleep(time.Minute)
		if n, held := j.window.now(); n != 1 || held != time.Minute {
			t.Errorf("%d in flight for %v", n, held)
		}
		began := time.Now()
		stop()
		if ended = time.Since(began); ended != time.Second {
			t.Errorf("it ended after %v", ended)
		}
		<-j.Ending()
	})
}
