package contract

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// watching runs Watch and hands every snapshot on. stop ends it and waits.
func (s suite) watching(fn func(*serving.Catalog)) (stop func()) {
	ctx, cancel := context.WithCancelCause(s.Context())
	why, done := errors.New("seen enough"), make(chan error, 1)
	go func() { done <- s.store.Watch(ctx, fn) }()
	return func() {
		s.Helper()
		cancel(why)
		select {
		case err := <-done:
			if !errors.Is(err, why) {
				s.Errorf("watch returned %v, want why its context ended", err)
			}
		case <-time.After(patience):
			s.Fatal("watch does not end with its context")
		}
	}
}

// next is what arrives on ch, in time.
func next[T any](s suite, ch <-chan T) T {
	s.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		s.Fatal("the watch does not call back")
		panic("unreachable")
	}
}

func (s suite) watch() {
	snapshots := make(chan *serving.Catalog, 100)
	stop := s.watching(func(cat *serving.Catalog) { snapshots <- cat })
	if cat := next(s, snapshots); cat.Revision != 0 {
		s.Fatalf("the first snapshot is %s", text(cat))
	}
	want := s.apply(catalog.PutApp{App: app("a")})
	s.wantSame(want, next(s, snapshots))
	want = s.apply(catalog.DeleteApp{Name: "a"})
	s.wantSame(want, next(s, snapshots))
	stop()

	stop = s.watching(func(cat *serving.Catalog) { snapshots <- cat })
	s.wantSame(want, next(s, snapshots))
	stop()
}

func (s suite) watchWhileWriting() {
	const last = 100
	type watcher struct {
		stop   func()
		inside atomic.Bool
		seen   uint64
		final  chan *serving.Catalog
	}
	watchers := make([]*watcher, 4)
	for i := range watchers {
		w := &watcher{final: make(chan *serving.Catalog, 1)}
		w.stop = s.watching(func(cat *serving.Catalog) {
			if !w.inside.CompareAndSwap(false, true) {
				s.Error("two calls at the same time")
			}
			if cat.Revision < w.seen || len(cat.Apps) != int(cat.Revision) {
				s.Errorf("revision %d with %d apps after revision %d", cat.Revision, len(cat.Apps), w.seen)
			}
			if w.seen = cat.Revision; w.seen == last {
				w.final <- cat
			}
			w.inside.Store(false)
		})
		watchers[i] = w
	}
	for i := range last {
		s.apply(catalog.PutApp{App: app(numbered("app-", i))})
	}
	for _, w := range watchers {
		s.wantSame(s.store.Catalog(), next(s, w.final))
		w.stop()
	}
}

// watchEnds ends a watch that is busy calling back, and writes after it.
func (s suite) watchEnds() {
	var calls atomic.Int64
	called := make(chan struct{}, 100)
	stop := s.watching(func(*serving.Catalog) { calls.Add(1); called <- struct{}{} })
	next(s, called)
	stop()
	before := calls.Load()
	s.apply(catalog.PutApp{App: app("a")})
	if after := calls.Load(); after != before {
		s.Fatalf("%d calls after the end", after-before)
	}
}
