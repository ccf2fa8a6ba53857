package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/gateway/usage"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/serving"
)

// Waiter is woken when a flight lands. It is a channel of capacity 1: a waiter of
// several flights looks at all of them when it wakes.
type Waiter chan struct{}

// Wake wakes the waiter; a second wake before it looked is the same as one.
func (w Waiter) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Flight is one question that is being answered. It lands once, with an output or
// a failure, and stays so. Waiters leave by not looking any more; the flight does
// not depend on them.
type Flight struct {
	cache *Cache
	key   question
	keep  bool // its output is cached
	own   bool // not shared with equal questions

	claimed atomic.Bool // it is being landed

	demand demand.Question // while replicas are asked
	usage  *usage.Counter  // the same
	asked  time.Time       // the same: since when

	mu      sync.Mutex // guards the following
	landed  bool
	output  *serving.Output
	failure *serving.Failure
	tell    []func(*serving.Output, *serving.Failure)
	parts   *Parts    // nil: the answer comes as a whole
	began   time.Time // when its first part came; zero: it has none
	waiters []Waiter
	first   [2]Waiter // room for the usual number of waiters
}

// Alone makes a flight that cannot be joined and whose output is not kept.
func (c *Cache) Alone(w Waiter) *Flight {
	f := &Flight{}
	f.wait(w)
	return f
}

// Own makes a flight that cannot be joined and whose output is cached.
func (c *Cache) Own(k Key, w Waiter) *Flight {
	f := &Flight{cache: c, key: question{Key: k}, keep: true, own: true}
	f.wait(w)
	return f
}

// Join joins the flight of an equal question of the same priority or a higher one, or opens one. The
// query that opened it, told by opened, must see to it that it lands; before it asks a replica it looks
// into the cache once more, because an equal question may have landed between its first look and this
// call.
func (c *Cache) Join(k Key, priority int, w Waiter) (f *Flight, opened bool) {
	return c.flights.join(c, question{k, priority}, w)
}

// Count says that a replica is asked for the flight, and so counts it: as demand, in flight until
// it lands, and its outcome, as usage. The leader of the flight calls it before the flight may
// land.
func (f *Flight) Count(t *demand.Tally, u *usage.Counter, now, deadline time.Time) {
	f.demand, f.usage, f.asked = t.Began(now, deadline), u, now
}

// Unserved counts that there was no replica to ask.
func (f *Flight) Unserved() { f.demand.Unserved() }

func (f *Flight) wait(w Waiter) {
	if f.waiters == nil {
		f.waiters = f.first[:0]
	}
	f.waiters = append(f.waiters, w)
}

// Land ends the flight with either an output or a failure. An output is cached,
// also when nothing waits for it any more. Landing twice changes nothing; Land
// says whether this was the first time.
func (f *Flight) Land(out *serving.Output, failure *serving.Failure) bool {
	if !f.claimed.CompareAndSwap(false, true) {
		return false
	}
	f.count(out, failure)
	if f.keep && out != nil && !out.Uncollected {
		f.cache.Put(f.key.Key, out) // before the flight goes: a query that then opens another finds it by Get
	}
	if f.keep && !f.own {
		f.cache.flights.leave(f)
	}
	f.mu.Lock()
	f.landed, f.output, f.failure = true, out, failure
	waiters, tell := f.waiters, f.tell
	f.mu.Unlock()
	for _, w := range waiters {
		w.Wake()
	}
	for _, t := range tell {
		t(out, failure)
	}
	return true
}

// count counts how the flight ended. What an answer in parts took is until its first one.
func (f *Flight) count(out *serving.Output, failure *serving.Failure) {
	if f.asked.IsZero() {
		return
	}
	took := time.Since(f.asked)
	now := f.asked.Add(took)
	f.mu.Lock()
	began := f.began
	f.mu.Unlock()
	if !began.IsZero() {
		took = began.Sub(f.asked)
	}
	f.demand.EndedStream(f.asked.Add(took), now, out != nil)
	f.usage.Ended(failure, now, took)
}

// Withdraw closes the flight to others, if only the caller has ever waited for
// it, and says so: then its question may be taken back.
func (f *Flight) Withdraw() bool { return f.withdraw(1) }

// withdraw is Withdraw where so many have waited for it and do so no longer.
func (f *Flight) withdraw(left int) bool {
	if !f.keep || f.own {
		return true
	}
	s := f.cache.flights.shard(f.key.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.landed || len(f.waiters) > left {
		return false
	}
	if s.open[f.key] == f {
		delete(s.open, f.key)
	}
	return true
}

// Then calls tell when the flight has ended, or at once. It must not block.
func (f *Flight) Then(tell func(*serving.Output, *serving.Failure)) {
	f.mu.Lock()
	if !f.landed {
		f.tell = append(f.tell, tell)
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	tell(f.output, f.failure)
}

// Result is how the flight ended, if it did.
func (f *Flight) Result() (out *serving.Output, failure *serving.Failure, landed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.output, f.failure, f.landed
}

const flightShards = 64

// flights are the open flights that can be joined, by key.
type flights struct {
	shards [flightShards]flightShard
}

// question is one that is asked with a priority.
type question struct {
	Key
	priority int
}

type flightShard struct {
	mu   sync.Mutex
	open map[question]*Flight
	_    [48]byte // keeps neighbours off this cache line
}

func (fs *flights) init() {
	for i := range fs.shards {
		fs.shards[i].open = map[question]*Flight{}
	}
}

func (fs *flights) shard(k Key) *flightShard { return &fs.shards[k.Lo%flightShards] }

func (fs *flights) join(c *Cache, asked question, w Waiter) (*Flight, bool) {
	s := fs.shard(asked.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := (question{Key: asked.Key}); q.priority <= asked.priority; q.priority++ {
		if f := s.open[q]; f != nil { // not landed: it leaves the map first
			f.mu.Lock()
			defer f.mu.Unlock()
			f.wait(w)
			return f, false
		}
	}
	f := &Flight{cache: c, key: asked, keep: true}
	f.wait(w)
	s.open[asked] = f
	return f, true
}

// leave takes a flight off the map.
func (fs *flights) leave(f *Flight) {
	s := fs.shard(f.key.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[f.key] == f {
		delete(s.open, f.key)
	}
}

// Open is the number of questions in flight that can be joined.
func (c *Cache) Open() int {
	n := 0
	for i := range c.flights.shards {
		s := &c.flights.shards[i]
		s.mu.Lock()
		n += len(s.open)
		s.mu.Unlock()
	}
	return n
}
