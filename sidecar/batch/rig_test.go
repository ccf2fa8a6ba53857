package batch

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

// rig is a batcher on a queue of its own, with a container that does as the test
// says. It is for use in a synctest bubble.
type rig struct {
	t       *testing.T
	queue   *queue.Queue
	batcher *Batcher
	model   func(n int) time.Duration // what a batch takes
	fail    error                     // what a batch ends with, after its time
	hang    bool                      // a batch ends with its context

	batches []ran
	answers map[uint32]answer // by the number of the item
	pushed  uint32

	mu sync.Mutex // guards answers, which come side by side from a container that runs queries so

	observed, waited int
	dropped          map[rpc.Status]int

	stop context.CancelFunc
	done chan struct{}
	err  error // of Run, once done is closed
}

// ran is one batch that the container was given.
type ran struct {
	at    time.Time
	items []uint32
}

type answer struct {
	status  rpc.Status
	message string
	at      time.Time
}

func newRig(t *testing.T, model func(int) time.Duration, change func(*Config)) *rig {
	r := &rig{t: t, model: model, answers: map[uint32]answer{}, dropped: map[rpc.Status]int{}, done: make(chan struct{})}
	r.queue = queue.New(queue.Limits{Items: 1000, Bytes: 1 << 20}, func(*queue.Item, queue.Load) error { return nil }, nil)
	p := NewProfile()
	cfg := Config{Queue: r.queue, Runner: r, Sizer: Fixed(4), Profile: p, Observer: r}
	if change != nil {
		change(&cfg)
	}
	r.batcher = New(cfg)
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() {
		defer close(r.done)
		r.err = r.batcher.Run(ctx)
	}()
	synctest.Wait() // Run has looked once: what a test pushes next, it begins itself
	return r
}

// pass lets d pass, and all that is to happen by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// end stops the batcher and returns what Run said.
func (r *rig) end() error {
	r.stop()
	<-r.done
	return r.err
}

// push queues an item that must be answered within budget; 0: any time.
func (r *rig) push(budget time.Duration) (number uint32) {
	r.t.Helper()
	return r.pushAll(1, budget)[0]
}

// pushAll queues n of them at once.
func (r *rig) pushAll(n int, budget time.Duration) (numbers []uint32) {
	r.t.Helper()
	for range n {
		r.pushed++
		it := &queue.Item{Arrived: time.Now(), Index: r.pushed, From: r}
		if budget > 0 {
			it.Deadline = it.Arrived.Add(budget)
		}
		require.NoError(r.t, r.queue.Push(it))
		numbers = append(numbers, r.pushed)
	}
	r.batcher.Wake()
	return numbers
}

// warmUp runs batches one after the other, so that the profile knows the model.
func (r *rig) warmUp(sizes ...int) {
	for _, n := range append([]int{1}, sizes...) {
		r.pushAll(n, 0)
		for r.queue.Len() > 0 || r.running() {
			pass(ms)
		}
	}
	pass(100 * ms) // idle
	r.batches = nil
	clear(r.answers)
}

func (r *rig) running() bool { _, busy := r.batcher.Busy(time.Now()); return busy }

func (r *rig) Begin(items []*queue.Item, ended func(error)) (giveUp func()) {
	ctx, giveUp := context.WithCancel(context.Background())
	go func() {
		defer giveUp()
		ended(r.predict(ctx, items))
	}()
	return giveUp
}

func (r *rig) predict(ctx context.Context, items []*queue.Item) error {
	b := ran{at: time.Now()}
	for _, it := range items {
		b.items = append(b.items, it.Index)
	}
	r.batches = append(r.batches, b)
	took := time.Hour
	if !r.hang {
		took = r.model(len(items))
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return errors.New("it hangs")
	}
	if r.fail != nil {
		items[0].Answer(&rpc.Answer{})
		return r.fail
	}
	for _, it := range items {
		it.Answer(&rpc.Answer{})
	}
	return nil
}

func (r *rig) Answer(it *queue.Item, a *rpc.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.answers[it.Index]; twice {
		r.t.Errorf("item %d was answered twice", it.Index)
	}
	r.answers[it.Index] = answer{a.Status, string(a.Message), time.Now()}
}

func (r *rig) Batch(n int, took time.Duration) { r.observed += n }
func (r *rig) Waited(time.Duration)            { r.waited++ }
func (r *rig) Dropped(status rpc.Status)       { r.dropped[status]++ }

// statuses counts the answers so far.
func (r *rig) statuses() map[rpc.Status]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[rpc.Status]int{}
	for a := range maps.Values(r.answers) {
		counts[a.status]++
	}
	return counts
}
