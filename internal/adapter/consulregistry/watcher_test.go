package consulregistry

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// patience bounds every wait; nothing takes that long.
const patience = 30 * time.Second

// watcher has seen the lists of a watch.
type watcher struct {
	*testing.T
	mu    sync.Mutex // guards the following
	lists [][]string
	last  []serving.Endpoint
	grown chan struct{} // closed at the next list
}

// watching watches until the test ends.
func watching(t *testing.T, r *Registry) *watcher {
	w := &watcher{T: t, grown: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Watch(ctx, w.update) }()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watcher) update(list []serving.Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, e := range list {
		names = append(names, e.Replica)
	}
	w.lists, w.last = append(w.lists, names), list
	close(w.grown)
	w.grown = make(chan struct{})
}

// until waits for a list of these replicas, and returns all lists up to it.
func (w *watcher) until(replicas ...string) [][]string {
	w.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		lists, grown := w.lists, w.grown
		w.mu.Unlock()
		if n := len(lists); n > 0 && slices.Equal(lists[n-1], replicas) {
			return lists
		}
		select {
		case <-grown:
		case <-deadline:
			w.Fatalf("got lists %v, want %v at last", lists, replicas)
		}
	}
}

// stays wants no list to lack one of these replicas, from the first that has all.
func stays(t *testing.T, lists [][]string, replicas ...string) {
	t.Helper()
	seen := false
	for _, list := range lists {
		has := !slices.ContainsFunc(replicas, func(name string) bool { return !slices.Contains(list, name) })
		if seen && !has {
			t.Fatalf("the list shrank to %v", list)
		}
		seen = seen || has
	}
	if !seen {
		t.Fatalf("no list of %v has %v", lists, replicas)
	}
}

func numbered(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}
