package models

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func remove(id string, sequence uint64, r Removal) serving.StreamMessage {
	u := Update{UUID: id, Sequence: sequence, Remove: &r}
	if sequence%2 == 1 {
		return serving.StreamMessage{Stream: "in", Value: u.AppendProtobuf(nil)}
	}
	return serving.StreamMessage{Stream: "in", Value: u.AppendJSON(nil)}
}

// TestRemovals of versions, models and apps.
func TestRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("tasting")
		w.run(nil)
		m := source("2")
		m.Apps = []string{"tasting"}
		w.write(message("a", source("1")), message("b", m), remove("c", 0, Removal{Model: "wine", Version: "1"}), remove("d", 1, Removal{Model: "wine", Version: "1"}),
			remove("e", 0, Removal{Model: "none"}), remove("f", 1, Removal{App: "none"}))
		w.settle()
		if got := w.versions("wine"); !slices.Equal(got, []string{"2"}) {
			t.Errorf("there are the versions %q", got)
		}
		w.write(remove("g", 0, Removal{Model: "wine", Version: "2"}), remove("h", 0, Removal{Model: "wine"}))
		w.settle()
		w.write(remove("i", 0, Removal{Model: "wine", Version: "2", Unlink: true}))
		w.settle()
		if w.versions("wine") != nil || len(w.store.Catalog().Apps["tasting"].Models) > 0 {
			t.Errorf("there are the versions %q", w.versions("wine"))
		}
		w.write(message("j", m), remove("k", 0, Removal{Model: "wine", Unlink: true}), remove("l", 1, Removal{App: "tasting"}))
		w.settle()
		if cat := w.store.Catalog(); len(cat.Models) > 0 || len(cat.Apps) > 0 {
			t.Errorf("there are %v and %v", cat.Models, cat.Apps)
		}
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"c", Removed}, outcome{"d", Unchanged}, outcome{"e", Unchanged}, outcome{"f", Unchanged},
			outcome{"i", Removed}, outcome{"j", Deployed}, outcome{"k", Removed}, outcome{"l", Removed},
			outcome{"g", `refused: the management API refuses the removal: version "2" is the current one of model "wine", which app "tasting" calls`},
			outcome{"h", `refused: the management API refuses the removal: model "wine" is linked by app "tasting"; unlink it first`})
		ack, err := ParseAcknowledgement(w.read("out")[2].Value, 2)
		if err != nil || ack.Model != "wine" || ack.Version != "1" {
			t.Errorf("%+v, %v", ack, err)
		}
	})
}

// TestWhatCannotBeUnlinked is refused: an app names the model in its stages.
func TestWhatCannotBeUnlinked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(message("a", source("1")))
		w.settle()
		app := serving.App{Name: "chain", InputType: serving.Doubles, SLO: 1e9, Stages: serving.Pipeline{{Name: "one", Model: "wine"}}}
		w.apply(catalog.PutApp{App: app})
		w.write(remove("b", 0, Removal{Model: "wine", Unlink: true}))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", "refused: the management API refuses the removal: "})
	})
}

// TestOldRemovals are not about what came after them.
func TestOldRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		u := Update{UUID: "a", Sequence: 5, Model: source("1")}
		w.write(serving.StreamMessage{Stream: "in", Value: u.AppendJSON(nil)}, remove("b", 4, Removal{Model: "wine", Version: "1"}), remove("c", 3, Removal{Model: "wine"}), remove("d", 6, Removal{Model: "wine"}))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Outdated}, outcome{"c", Outdated}, outcome{"d", Removed})

		// A person makes the version anew before the removal is applied.
		v := serving.Version{ModelID: serving.ModelID{Model: "wine", Version: "1"}, InputType: serving.Doubles, Container: serving.Container{Command: []string{"serve"}}}
		hold := make(chan struct{})
		w.fail(func(*http.Request, bool) bool { <-hold; return false })
		w.write(remove("e", 0, Removal{Model: "wine", Version: "1"}))
		written := time.Now()
		w.until("later time", func() bool { return time.Since(written) > 2*time.Millisecond })
		w.apply(catalog.Signed{Change: catalog.PutVersion{Version: v}, By: serving.Author{Who: "ann"}})
		close(hold)
		w.settle()
		if !slices.Equal(w.versions("wine"), []string{"1"}) {
			t.Error("what was made later is gone")
		}
	})
}

// TestAVersionThatAnswers is removed when another one can, or becomes a dead letter.
func TestAVersionThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("tasting")
		w.run(func(c *Config) { c.Patience = patience })
		m := source("1")
		m.Apps = []string{"tasting"}
		w.write(message("a", m))
		w.settle()
		w.apply(catalog.SetServing{{Model: "wine", Version: "1"}})
		w.write(message("b", source("2")), remove("c", 0, Removal{Model: "wine", Version: "1"}))
		w.until("trouble", func() bool { return strings.Contains(w.job.Status().Condition, `answers app "tasting"`) })
		w.apply(catalog.SetServing{{Model: "wine", Version: "2"}})
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"c", Removed})
		w.stop()
		w.run(func(c *Config) { c.Patience = 1 })
		w.write(message("d", source("3")), remove("e", 0, Removal{Model: "wine", Version: "2"}))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Deployed}, outcome{"c", Removed}, outcome{"d", Deployed},
			outcome{"e", `refused: the management API refuses the removal: version "2" of model "wine" answers app "tasting" until version "3" has a ready replica`})
	})
}

// TestRemovalsAndApps keep their order in a batch.
func TestRemovalsAndApps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(nil)
		w.write(message("a", source("1")), asks("b", `["wine"]`))
		w.settle()
		w.fail(func(r *http.Request, answered bool) bool { // the app takes longer, once
			if r.Method == http.MethodPut && !answered {
				w.fail(nil)
				return true
			}
			return false
		})
		w.write(asks("c", "[]"), remove("d", 0, Removal{Model: "wine"}))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", Configured}, outcome{"c", Configured}, outcome{"d", Removed})
	})
}
