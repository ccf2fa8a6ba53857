package models

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// asks is an update that makes the app tasting one of some models.
func asks(id, models string) serving.StreamMessage {
	return text(`{"uuid": %q, "ensemble": {"name": "tasting", "input_type": "doubles", "models": %s, "latency_slo_micros": 1000}}`, id, models)
}

// TestTheLastWordAboutAnApp has the later update of a batch say which models an app asks,
// whichever of them takes longer.
func TestTheLastWordAboutAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(times int64) func(*http.Request, bool) bool { // the first update
			var failed atomic.Int64
			return func(r *http.Request, answered bool) bool {
				first := r.URL.Path == "/api/v1/models/wine/versions" || r.Method == http.MethodPut && r.URL.Path == "/api/v1/apps/tasting"
				return first && !answered && failed.Add(1) <= times
			}
		}
		for _, ensembleFirst := range []bool{false, true} {
			w := newWorld(t)
			w.app("tasting")
			w.run(func(c *Config) { c.Patience = patience })
			m := source("1")
			m.Apps = []string{"tasting"}
			updates, want, models := []serving.StreamMessage{message("a", m), asks("e", "[]")}, []outcome{{"a", Deployed}, {"e", Configured}}, []string{}
			if ensembleFirst {
				slices.Reverse(updates)
				slices.Reverse(want)
				models = []string{"wine"}
			}
			w.fail(slow(2))
			w.write(updates...)
			w.settle()
			w.want(want...)
			if got := w.store.Catalog().Apps["tasting"].Models; !slices.Equal(got, models) {
				t.Errorf("the ensemble first: %v: the app asks %q, want %q", ensembleFirst, got, models)
			}
		}
	})
}

// TestTheLastWordOfWhatIsPutOff is kept, too.
func TestTheLastWordOfWhatIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("tasting")
		w.run(func(c *Config) { c.Patience = patience })
		m, other := source("1"), source("1")
		m.Apps, other.Name = []string{"tasting"}, "other"
		w.write(asks("e", `["other"]`), message("a", m), message("b", other))
		w.settle()
		w.want(outcome{"e", Configured}, outcome{"a", Deployed}, outcome{"b", Deployed})
		if got := w.store.Catalog().Apps["tasting"].Models; !slices.Equal(got, []string{"other", "wine"}) {
			t.Errorf("the app asks %q", got)
		}
	})
}

// TestUpdatesBringWhatOthersMiss though they share an app and only one is applied at a time.
func TestUpdatesBringWhatOthersMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(func(c *Config) { c.Patience, c.Concurrency = time.Hour, 1 })
		var updates []serving.StreamMessage
		var want []outcome
		for i := range 5 {
			if i == 2 {
				updates, want = append(updates, asks("e", "[]")), append(want, outcome{"e", Configured})
				continue
			}
			m := source("1")
			m.Name, m.Apps = fmt.Sprintf("wine-%d", i), []string{"tasting"}
			updates, want = append(updates, message(m.Name, m)), append(want, outcome{m.Name, Deployed})
		}
		w.write(updates...)
		w.settle()
		w.want(want...)
	})
}

// TestWhatBothMiss comes from elsewhere: one update waits for it, the other one for that.
func TestWhatBothMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(func(c *Config) { c.Patience = time.Hour })
		m := source("1")
		m.Apps = []string{"tasting"}
		w.write(message("a", m), asks("e", `["other"]`))
		w.until("trouble", func() bool { return strings.Contains(w.job.Status().Condition, `there is no model "other"`) })
		other := serving.Version{ModelID: serving.ModelID{Model: "other", Version: "1"}, InputType: serving.Doubles, Replicas: 1, Container: serving.Container{Command: []string{"other"}}}
		if _, err := w.store.Apply(t.Context(), catalog.PutVersion{Version: other}, 0); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"e", Configured})
	})
}
