package contract

import (
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func (s suite) conflicts() {
	first := s.apply(catalog.PutApp{App: app("a")})
	second := s.apply(catalog.PutApp{App: app("b")})
	for _, revision := range []uint64{first.Revision, second.Revision + 1} {
		cat, err := s.store.Apply(s.Context(), catalog.DeleteApp{Name: "a"}, revision)
		if !errors.Is(err, catalog.ErrConflict) || cat != nil {
			s.Fatalf("at revision %d for %d: got %v and error %v", second.Revision, revision, cat, err)
		}
	}
	s.wantSame(second, s.store.Catalog())
	cat, err := s.store.Apply(s.Context(), catalog.DeleteApp{Name: "a"}, second.Revision)
	if err != nil || cat.Revision != second.Revision+1 || cat.Apps["a"] != nil {
		s.Fatalf("got %v and error %v", cat, err)
	}
}

func (s suite) immutable() {
	a, v := app("a"), version("m", "1")
	s.apply(catalog.PutVersion{Version: v})
	a.Models = []string{"m"}
	first := s.apply(catalog.PutApp{App: a})
	was := text(first)

	a.Models[0] = "changed by the caller"
	v.Labels[0] = "changed by the caller"
	v.Container.Env["K"] = "changed by the caller"
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.apply(catalog.PutVersion{Version: version("n", "1")})
	s.apply(catalog.Link{App: "a", Model: "n"})
	s.apply(catalog.Unlink{App: "a", Model: "m"})
	s.apply(catalog.SetCurrent{ID: id("m", "1")})
	s.apply(catalog.DeleteVersion{ID: id("m", "1")})
	s.apply(catalog.DeleteApp{Name: "a"})
	if now := text(first); now != was {
		s.Fatalf("the snapshot has changed from\n%s\nto\n%s", was, now)
	}
}

const (
	writers = 8
	changes = 50
)

// concurrentWriters has every writer make changes of its own: none may be lost.
func (s suite) concurrentWriters() {
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range changes {
				name := numbered(numbered("app-", w)+"-", i)
				cat, err := s.store.Apply(s.Context(), catalog.PutApp{App: app(name), Create: true}, 0)
				if err != nil || cat.Apps[name] == nil {
					s.Errorf("put %s: %v", name, err)
					return
				}
			}
		})
	}
	all.Wait()
	if cat := s.store.Catalog(); cat.Revision != writers*changes || len(cat.Apps) != writers*changes {
		s.Fatalf("got revision %d with %d apps, want %d", cat.Revision, len(cat.Apps), writers*changes)
	}
}

// compareAndSwap has every writer count in the same app: read, add one, write if
// nobody else has. The sum is right only if no two wrote after the same read.
func (s suite) compareAndSwap() {
	const each = 10
	counter := app("counter")
	counter.SLO = serving.Duration(time.Second)
	s.apply(catalog.PutApp{App: counter})
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := s.increment(); err != nil {
					s.Errorf("increment: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := s.store.Catalog().Apps["counter"].SLO.Std() - time.Second; got != writers*each*time.Microsecond {
		s.Fatalf("counted to %v, want %d µs", got, writers*each)
	}
}

func (s suite) increment() error {
	for {
		cat := s.store.Catalog()
		next := *cat.Apps["counter"]
		next.SLO += serving.Duration(time.Microsecond)
		_, err := s.store.Apply(s.Context(), catalog.PutApp{App: next}, cat.Revision)
		if !errors.Is(err, catalog.ErrConflict) {
			return err
		}
	}
}
