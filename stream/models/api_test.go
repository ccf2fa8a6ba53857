package models

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestTheAPIIsAway is waited for, whatever it says, and nothing becomes a dead letter.
func TestTheAPIIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var answer atomic.Int64
		front := w.net.Serve(t, http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			switch answer.Load() {
			case 0:
				panic(http.ErrAbortHandler)
			case 1:
				to.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				http.NotFound(to, r) // something else is at its address
			case 3:
				http.Error(to, `{"code": "unauthorized", "detail": "show a key"}`, http.StatusUnauthorized)
			case 4:
				http.Redirect(to, r, w.url, http.StatusFound)
			default:
				w.handler.ServeHTTP(to, r)
			}
		}))
		w.run(func(c *Config) { c.API.Server = front })
		w.write(message("a", source("1")))
		for n := range int64(5) {
			answer.Store(n)
			failed := w.job.Status().LastFailed
			w.until("trouble", func() bool {
				s := w.job.Status()
				return s.LastFailed != nil && (failed == nil || s.LastFailed.After(*failed)) && s.Condition != "" && w.job.Ready() != nil
			})
		}
		answer.Store(9)
		w.settle()
		w.want(outcome{"a", Deployed})
		if err := w.job.Ready(); err != nil {
			t.Error(err)
		}
	})
}

// TestAProxyRefuses what is too large for it: the update becomes a dead letter when it has
// waited for long enough, and those behind it go on. A proxy that has nobody to ask is waited for.
func TestAProxyRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var away atomic.Bool
		away.Store(true)
		front := w.net.Serve(t, http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			switch {
			case away.Load():
				http.NotFound(to, r)
			case r.ContentLength > 1000:
				to.WriteHeader(http.StatusRequestEntityTooLarge)
			default:
				w.handler.ServeHTTP(to, r)
			}
		}))
		w.run(func(c *Config) { c.API.Server, c.Patience = front, 50*time.Millisecond })
		large := source("1")
		large.Data = []byte("x = 1 # " + rand.Text() + strings.Repeat(rand.Text(), 100))
		asks := source("2")
		asks.Apps = []string{"last"}
		w.write(message("a", large), message("b", asks), text(`{"uuid": "c", "ensemble": {"name": "last", "input_type": "doubles", "models": [], "latency_slo_micros": 1000}}`))
		time.Sleep(200 * time.Millisecond) // more than the patience, without an app or a model that anybody says is missing
		away.Store(false)
		w.settle()
		w.want(outcome{"b", Deployed}, outcome{"c", Configured},
			outcome{"a", "refused: what is before the management API refuses it: the server answers 413 Request Entity Too Large"})
	})
}

// TestKeys waits for a key that may deploy, and tells it from one that may not deploy this.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, true)
		w.app("tasting")
		secrets := map[string]string{}
		for name, key := range map[string]serving.Key{
			"viewer": {Role: serving.RoleViewer}, "deployer": {Role: serving.RoleDeployer}, "other": {Role: serving.RoleDeployer, Apps: []string{"other"}},
		} {
			made, secret := serving.NewKey()
			made.Name, made.Role, made.Apps = name, key.Role, key.Apps
			if _, err := w.store.Apply(t.Context(), catalog.AddKey{Key: *made}, 0); err != nil {
				t.Fatal(err)
			}
			secrets[name] = secret
		}
		var shown atomic.Value
		shown.Store("")
		w.run(func(c *Config) {
			c.API.Keys, c.API.Agent = func() []byte { return []byte(shown.Load().(string)) }, "topsail/1 stream models"
		})
		m := source("1")
		m.Apps = []string{"tasting"}
		w.write(message("a", m))
		w.until("trouble without a key", func() bool { return strings.Contains(w.job.Status().Condition, "key") })
		shown.Store(secrets["viewer"])
		w.until("trouble with a viewer's", func() bool { return strings.Contains(w.job.Status().Condition, "has not the role deployer") })
		if len(w.read("dead")) > 0 {
			t.Error("there is a dead letter")
		}
		shown.Store(secrets["deployer"])
		w.settle()
		shown.Store(secrets["other"])
		w.write(message("b", source("2")))
		w.settle()
		w.want(outcome{"a", Deployed}, outcome{"b", "refused: the management API refuses it: "})
		if d := w.store.Catalog().Version(serving.ModelID{Model: m.Name, Version: "1"}).Deployed; d == nil || d.By != "deployer" || d.Client != "topsail/1 stream models" {
			t.Errorf("the version is deployed by %+v", d)
		}
	})
}
