package contract

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Replicas is the seam of where replicas are, with the means to change that.
type Replicas interface {
	// Watch calls back with the whole list, at once and then whenever it has
	// changed, one call at a time and never going back, until ctx ends. It may skip
	// lists that are no longer the newest. What it hands over is never written to.
	Watch(ctx context.Context, update func([]serving.Endpoint)) error

	// Put makes a replica known or changes what is known of it, and Remove forgets
	// one, the way that this implementation hears of replicas. Tokens are not part
	// of it: an implementation may have one for all.
	Put(e serving.Endpoint)
	Remove(replica string)
}

// Resolver runs the suite. open makes a source that knows no replica, which the
// test closes at its end.
func Resolver(t *testing.T, open func(t *testing.T) Replicas) { runResolver(t, open, plainly) }

// ResolverInBubbles runs it in virtual time.
func ResolverInBubbles(t *testing.T, open func(t *testing.T) Replicas) {
	runResolver(t, open, synctest.Test)
}

func runResolver(t *testing.T, open func(t *testing.T) Replicas, in runner) {
	tests := []struct {
		name string
		run  func(s replicas)
	}{
		{"a snapshot at once", replicas.atOnce},
		{"changes", replicas.changes},
		{"what changes nothing", replicas.noChange},
		{"watchers on their own", replicas.watchers},
		{"a slow watcher", replicas.slow},
		{"watch while writing", replicas.writing},
		{"watch ends", replicas.ends},
		{"an ended context", replicas.endedContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in(t, func(t *testing.T) { test.run(replicas{T: t, Replicas: open(t)}) })
		})
	}
}

type replicas struct {
	*testing.T
	Replicas
}

// endpoint has a name, and a revision that shows in where and what it is.
func endpoint(name string, revision int) serving.Endpoint {
	return serving.Endpoint{
		Replica: name, Addr: numbered("host:", revision), Ready: true,
		Models: []serving.Definition{{ModelID: id("m", numbered("", revision))}, {ModelID: id("another", "1")}},
	}
}

// endpoints is a list that was seen, by replica.
type endpoints map[string]serving.Endpoint

func (s replicas) byName(list []serving.Endpoint) endpoints {
	seen := endpoints{}
	for _, e := range list {
		if _, twice := seen[e.Replica]; twice {
			s.Errorf("replica %q is in the list twice", e.Replica)
		}
		seen[e.Replica] = e
	}
	return seen
}

func (e endpoints) equal(other endpoints) bool {
	return maps.EqualFunc(e, other, func(a, b serving.Endpoint) bool {
		return a.Replica == b.Replica && a.Addr == b.Addr && a.Ready == b.Ready && slices.Equal(a.Models, b.Models)
	})
}

func all(list ...serving.Endpoint) endpoints {
	m := endpoints{}
	for _, e := range list {
		m[e.Replica] = e
	}
	return m
}

// sight is one watch: the lists that it saw, and the last of them.
type sight struct {
	replicas
	mu    sync.Mutex // guards the following
	lists []endpoints
	raw   [][]serving.Endpoint
	grown chan struct{} // closed at the next list
	stop  func()        // ends the watch and waits
}

func (s replicas) watch() *sight {
	s.Helper()
	w := &sight{replicas: s, grown: make(chan struct{})}
	var inside atomic.Bool
	w.stop = s.watching(func(list []serving.Endpoint) {
		if !inside.CompareAndSwap(false, true) {
			s.Error("two calls at the same time")
		}
		defer inside.Store(false)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.raw, w.lists = append(w.raw, list), append(w.lists, s.byName(list))
		close(w.grown)
		w.grown = make(chan struct{})
	})
	return w
}

// watching runs Watch. stop ends it and waits.
func (s replicas) watching(update func([]serving.Endpoint)) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx, update) }()
	return func() {
		s.Helper()
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				s.Errorf("watch returned %v, want that its context ended", err)
			}
		case <-time.After(patience):
			s.Fatal("watch does not end with its context")
		}
	}
}

// until waits for a list.
func (w *sight) until(want endpoints) {
	w.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		grown, n := w.grown, len(w.lists)
		good := n > 0 && w.lists[n-1].equal(want)
		w.mu.Unlock()
		if good {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			w.Fatalf("after %d lists the last is not %v", n, want)
		}
	}
}

// end ends the watch. What it has handed over must be as it was.
func (w *sight) end() {
	w.Helper()
	w.stop()
	for i, list := range w.raw {
		if !w.byName(list).equal(w.lists[i]) {
			w.Errorf("list %d was written to", i)
		}
	}
}

func (s replicas) atOnce() {
	w := s.watch()
	w.until(all())
	w.end()
	s.Put(endpoint("a", 1))
	s.Put(endpoint("b", 1))
	w = s.watch()
	w.until(all(endpoint("a", 1), endpoint("b", 1)))
	w.end()
}

func (s replicas) changes() {
	w := s.watch()
	w.until(all())
	s.Put(endpoint("a", 1))
	w.until(all(endpoint("a", 1)))
	s.Put(endpoint("b", 1))
	w.until(all(endpoint("a", 1), endpoint("b", 1)))
	s.Put(endpoint("a", 2))
	w.until(all(endpoint("a", 2), endpoint("b", 1)))
	b := endpoint("b", 1)
	b.Models = b.Models[1:]
	s.Put(b)
	w.until(all(endpoint("a", 2), b))
	b.Ready = false
	s.Put(b)
	w.until(all(endpoint("a", 2), b))
	s.Remove("a")
	w.until(all(b))
	s.Put(endpoint("a", 3))
	w.until(all(endpoint("a", 3), b))
	s.Remove("a")
	s.Remove("b")
	w.until(all())
	w.end()
}

func (s replicas) noChange() {
	s.Put(endpoint("a", 1))
	w := s.watch()
	w.until(all(endpoint("a", 1)))
	s.Put(endpoint("a", 1))
	s.Remove("never known")
	s.Put(endpoint("b", 1)) // seen after the others
	w.until(all(endpoint("a", 1), endpoint("b", 1)))
	w.end()
}

func (s replicas) watchers() {
	first, second := s.watch(), s.watch()
	s.Put(endpoint("a", 1))
	first.until(all(endpoint("a", 1)))
	second.until(all(endpoint("a", 1)))
	first.end()
	s.Put(endpoint("a", 2))
	second.until(all(endpoint("a", 2)))
	second.end()
}

// slow blocks in the callback: that holds up neither writers nor other watchers,
// and the newest list comes all the same.
func (s replicas) slow() {
	inside, release, seen := make(chan struct{}), make(chan struct{}), make(chan endpoints, 100)
	var once sync.Once
	stop := s.watching(func(list []serving.Endpoint) {
		once.Do(func() { close(inside); <-release })
		seen <- s.byName(list)
	})
	<-inside
	other := s.watch()
	s.Put(endpoint("a", 1))
	s.Put(endpoint("a", 2))
	other.until(all(endpoint("a", 2)))
	close(release)
	deadline := time.After(patience)
	for newest := false; !newest; {
		select {
		case list := <-seen:
			newest = list.equal(all(endpoint("a", 2)))
		case <-deadline:
			s.Fatal("the slow watcher does not see the newest list")
		}
	}
	stop()
	other.end()
}

// writing has several replicas change at the same time: each watcher sees each of
// them go forward only, and in the end as it is.
func (s replicas) writing() {
	const writers, revisions = 4, 25
	watchers := []*sight{s.watch(), s.watch(), s.watch()}
	var writing sync.WaitGroup
	want := endpoints{}
	for i := range writers {
		name := numbered("replica-", i)
		want[name] = endpoint(name, revisions)
		writing.Go(func() {
			for revision := 1; revision <= revisions; revision++ {
				s.Put(endpoint(name, revision))
			}
		})
	}
	writing.Wait()
	for _, w := range watchers {
		w.until(want)
		w.end()
		reached := map[string]int{}
		for _, list := range w.lists {
			for name, before := range reached {
				if _, there := list[name]; !there {
					s.Errorf("%s was at revision %d and is gone", name, before)
				}
			}
			for name, e := range list {
				revision := s.revision(e)
				if revision < reached[name] {
					s.Errorf("%s is at revision %d after %d", name, revision, reached[name])
				}
				reached[name] = revision
			}
		}
	}
}

// revision is that of an endpoint which must be whole.
func (s replicas) revision(e serving.Endpoint) int {
	for revision := range 100 {
		if all(endpoint(e.Replica, revision)).equal(all(e)) {
			return revision
		}
	}
	s.Errorf("%+v is of no revision", e)
	return 0
}

// ends ends a watch that has called back, and writes after it.
func (s replicas) ends() {
	w := s.watch()
	w.until(all())
	w.end()
	before := len(w.lists)
	s.Put(endpoint("a", 1))
	again := s.watch()
	again.until(all(endpoint("a", 1)))
	again.end()
	if after := len(w.lists); after != before {
		s.Fatalf("%d calls after the end", after-before)
	}
}

func (s replicas) endedContext() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx, func([]serving.Endpoint) {}) }()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			s.Errorf("watch returned %v, want that its context ended", err)
		}
	case <-time.After(patience):
		s.Fatal("watch does not end")
	}
}
