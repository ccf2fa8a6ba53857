package loop

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/internal/condition"
)

// consumer has records, in batches, as many as are asked for.
type consumer struct {
	mu       sync.Mutex
	waiting  int
	polls    int
	commits  []error // of the next commits; nil, when there are none left
	produced int
	more     chan struct{}
}

func newConsumer(waiting int) *consumer {
	return &consumer{waiting: waiting, more: make(chan struct{}, 1)}
}

func (c *consumer) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for {
		c.mu.Lock()
		n := min(c.waiting, most)
		c.waiting -= n
		c.polls++
		c.mu.Unlock()
		if n > 0 {
			return make([]serving.StreamRecord, n), nil
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

func (c *consumer) Commit(_ context.Context, messages []serving.StreamMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.commits) > 0 {
		err := c.commits[0]
		c.commits = c.commits[1:]
		if err != nil {
			return err
		}
	}
	c.produced += len(messages)
	return nil
}

// batch makes a message of each record.
type batch struct{ shortened, done int }

func (b *batch) Message(int) (m serving.StreamMessage) { return m }
func (b *batch) Shorten(int, error) bool               { b.shortened++; return b.shortened < 3 }
func (b *batch) Done()                                 { b.done++ }

type large int

func (l large) Error() string { return "too large" }
func (l large) TooLarge() int { return int(l) }

// run runs a loop until stop.
func run(t *testing.T, c *consumer, gate *Gate, work func(ctx context.Context, records []serving.StreamRecord) (Batch, error)) (l *Loop, failed map[string]int, stop func()) {
	t.Helper()
	failed = map[string]int{}
	l = &Loop{
		Consumer: c, Most: 4, Drain: time.Second, Gate: gate, Tracker: condition.New(slog.New(slog.DiscardHandler)), Work: work,
		Failed: func(operation string) { failed[operation]++ }, Lost: func() { failed["lost"]++ },
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return l, failed, stop
}

func TestRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, made := newConsumer(10), []*batch{}
		c.commits = []error{serving.ErrRecordsLost, large(0), errors.New("away"), nil}
		l, failed, stop := run(t, c, NewGate(true), func(context.Context, []serving.StreamRecord) (Batch, error) {
			made = append(made, &batch{})
			if len(made) == 4 {
				return nil, errors.New("they are to be redelivered")
			}
			return made[len(made)-1], nil
		})
		time.Sleep(time.Minute)
		c.add(3)
		time.Sleep(time.Minute)
		stop()
		if len(made) != 4 || made[0].done != 0 || made[1].shortened != 1 || made[1].done != 0 || made[2].done != 1 {
			t.Errorf("batches %+v", made)
		}
		if failed["lost"] != 1 || failed[Commit] != 1 || failed[Poll] != 0 || l.LostBatches() != 1 || l.Tracker.Err() != nil {
			t.Errorf("failures %v, %v", failed, l.Tracker.Err())
		}
	})
}

// TestGate has nothing polled while it is closed, nor before it is known whether it is.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, gate, worked := newConsumer(1), NewGate(false), 0
		catalogs := make(chan *serving.Catalog)
		watch := func(ctx context.Context, fn func(*serving.Catalog)) error {
			for {
				select {
				case cat := <-catalogs:
					fn(cat)
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		var following sync.WaitGroup
		defer following.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		following.Go(func() { gate.Follow(ctx, watch, "s") })
		_, failed, stop := run(t, c, gate, func(_ context.Context, records []serving.StreamRecord) (Batch, error) {
			worked += len(records)
			return &batch{}, nil
		})
		defer stop()
		stream := func(s *serving.Suspension) *serving.Catalog {
			return &serving.Catalog{Streams: map[string]*serving.Stream{"s": {Name: "s", Suspension: s}}}
		}
		expect := func(what string, polls bool, want int) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if (c.polls > 0) != polls || worked != want {
				t.Errorf("%s: %d polls, %d records", what, c.polls, worked)
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
		if gate.Suspension() != suspension || failed[Poll] != 0 {
			t.Errorf("%+v, %v", gate.Suspension(), failed)
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
		l, _, stop := run(t, c, NewGate(true), func(ctx context.Context, _ []serving.StreamRecord) (Batch, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		time.Sleep(time.Minute)
		if n, held := l.InHand(); n != 1 || held != time.Minute {
			t.Errorf("%d in flight for %v", n, held)
		}
		began := time.Now()
		stop()
		if ended = time.Since(began); ended != time.Second {
			t.Errorf("it ended after %v", ended)
		}
		if n, _ := l.InHand(); n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}
