package models

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestSuspended takes nothing more, and goes on from where it was, also after a restart.
func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		apply := func(change catalog.Change) {
			t.Helper()
			if _, err := w.store.Apply(t.Context(), change, 0); err != nil {
				t.Fatal(err)
			}
		}
		follow := func(c *Config) { c.Catalog = w.store }
		apply(catalog.PutStream{Stream: serving.Stream{Name: "models", Kind: serving.ModelStream, Input: []string{"in"}, Output: "out", DeadLetter: "dead"}})
		w.run(follow)
		w.write(message("a", source("1")))
		w.settle()
		apply(catalog.SuspendStream{Name: "models", Suspension: serving.Suspension{By: "ann", Reason: "bad models"}})
		w.until("suspension", func() bool { return w.job.Status().Suspended != nil })
		w.write(message("b", source("2")))
		w.stop()
		w.run(follow) // it is still suspended
		w.until("suspension", func() bool { return w.job.Status().Suspended != nil })
		if s := w.job.Status(); s.Suspended.Reason != "bad models" || s.InFlight != 0 || w.current("wine") != "1" {
			t.Errorf("%+v, version %s is current", s, w.current("wine"))
		}
		apply(catalog.ResumeStream{Name: "models"})
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed})
		if w.job.Status().Suspended != nil || w.current("wine") != "2" {
			t.Errorf("version %s is current", w.current("wine"))
		}
	})
}

// TestSuspendedWhileItWaits for the management API: it stops asking.
func TestSuspendedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stream := serving.Stream{Name: "models", Kind: serving.ModelStream, Input: []string{"in"}, Output: "out", DeadLetter: "dead"}
		if _, err := w.store.Apply(t.Context(), catalog.PutStream{Stream: stream}, 0); err != nil {
			t.Fatal(err)
		}
		w.fail(func(*http.Request, bool) bool { return true })
		w.run(func(c *Config) { c.Catalog = w.store })
		w.write(message("a", source("1")))
		w.until("trouble", func() bool { return w.job.Status().Condition != "" })
		if _, err := w.store.Apply(t.Context(), catalog.SuspendStream{Name: "models"}, 0); err != nil {
			t.Fatal(err)
		}
		w.until("suspension", func() bool { return w.job.Status().Suspended != nil })
		w.fail(nil)
		if s := w.job.Status(); s.InFlight != 1 || w.current("wine") != "" {
			t.Errorf("%+v", s)
		}
		if _, err := w.store.Apply(t.Context(), catalog.ResumeStream{Name: "models"}, 0); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.want(outcome{"a", Deployed})
	})
}

// TestSuspendedWhileItFetches leaves off, and has all its patience again when it is resumed.
func TestSuspendedWhileItFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		location := w.newLocation()
		apply := func(change catalog.Change) {
			t.Helper()
			if _, err := w.store.Apply(t.Context(), change, 0); err != nil {
				t.Fatal(err)
			}
		}
		apply(catalog.PutStream{Stream: serving.Stream{Name: "models", Kind: serving.ModelStream, Input: []string{"in"}, Output: "out", DeadLetter: "dead"}})
		w.run(func(c *Config) { location.allow(c); c.Catalog, c.Patience = w.store, 1 })
		w.write(message("a", location.model))
		location.next(t) <- fail
		location.next(t)
		apply(catalog.SuspendStream{Name: "models"})
		location.cut(t)
		apply(catalog.ResumeStream{Name: "models"})
		location.next(t) <- fail
		location.next(t) <- give
		w.settle()
		w.want(outcome{"a", Deployed})
	})
}
