package models

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCutOff has each request fail in turn, before it is done and after: in the end it is
// as if none had.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answered := range []bool{false, true} {
			for n := 0; ; n++ {
				w := newWorld(t)
				w.app("tasting")
				var seen atomic.Int64
				fired := atomic.Bool{}
				w.fail(func(_ *http.Request, after bool) bool {
					if after != answered || int(seen.Add(1)) != n+1 {
						return false
					}
					fired.Store(true)
					return true
				})
				w.run(nil)
				m := source("1")
				m.Apps = []string{"tasting"}
				w.write(message("a", m))
				w.settle()
				w.want(outcome{"a", Deployed})
				if w.current("wine") != "1" || !slices.Equal(w.store.Catalog().Apps["tasting"].Models, []string{"wine"}) {
					t.Errorf("cut off at %d: %+v", n, w.store.Catalog())
				}
				w.stop()
				if !fired.Load() {
					if n < 6 {
						t.Fatalf("there are only %d requests", n)
					}
					break
				}
			}
		}
	})
}

// TestKilled ends the process at each request, which is done or not: another one goes on,
// and acknowledges as if nothing had been.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 1; ; n++ {
			w := newWorld(t)
			w.app("tasting")
			reached, over := make(chan struct{}), make(chan struct{})
			var seen atomic.Int64
			hang := func(*http.Request, bool) bool {
				if int(seen.Add(1)) == n {
					close(reached)
					<-over
					return true
				}
				return false
			}
			w.fail(hang)
			w.run(nil)
			m := source("1")
			m.Apps = []string{"tasting"}
			w.write(message("a", m), message("b", source("2")), limit("c", 0, 1000))
			ended := false
			select {
			case <-reached:
			case <-time.After(patience):
				t.Fatal("nothing is asked")
			case <-w.committed(3):
				ended = true
			}
			w.stop() // what hangs is not committed
			close(over)
			w.fail(nil)
			if ended {
				if n < 12 {
					t.Fatalf("there are only %d steps", n)
				}
				return
			}
			if len(w.read("out")) > 2 {
				t.Fatal("what hangs is committed")
			}
			w.run(nil)
			w.settle()
			w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"c", Configured})
			if cat := w.store.Catalog(); w.current("wine") != "2" || len(cat.Models["wine"].Versions) != 2 || !slices.Equal(cat.Apps["tasting"].Models, []string{"wine"}) || cat.Apps["limited"] == nil {
				t.Errorf("killed at step %d: %+v", n, cat)
			}
			w.stop()
		}
	})
}

// committed is closed when so many records are.
func (w *world) committed(n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for {
			w.mu.Lock()
			is, changed := w.done >= n, w.changed
			w.mu.Unlock()
			if is {
				close(done)
				return
			}
			select {
			case <-changed:
			case <-w.Context().Done():
				return
			}
		}
	}()
	return done
}

// TestLostRecords are redelivered, and are acknowledged once.
func TestLostRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lose = true
		w.run(nil)
		w.write(message("a", source("1")))
		w.settle()
		w.want(outcome{"a", Deployed})
		w.until("count", func() bool { return w.job.Status().Updates > 0 }) // which follows the commit
		if s := w.job.Status(); s.Lost != 1 || s.Updates != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestEndsWhileItFetches has the update redelivered, and says nothing of it.
func TestEndsWhileItFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		location := w.newLocation()
		impatient := func(c *Config) { location.allow(c); c.Patience = 1 }
		w.run(impatient)
		w.write(message("a", location.model))
		location.next(t) <- fail
		location.next(t)
		w.stop()
		location.cut(t)
		w.want()
		w.run(impatient)
		location.next(t) <- give
		w.settle()
		w.want(outcome{"a", Deployed})
	})
}
