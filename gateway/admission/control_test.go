package admission

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// Buckets and series go with what they belong to.
func TestLimitsGoWithTheirOwners(t *testing.T) {
	registry := obs.NewRegistry()
	key, _ := serving.NewKey()
	key.Name, key.Role, key.Limit = "k", serving.RoleQuery, &serving.Limit{PerSecond: 1}
	c := New(Config{Metrics: registry})
	counted := func() bool {
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Contains(w.Body.String(), `topsail_gateway_refused_total{app="doubles",reason="limit"} 1`)
	}
	app := &serving.App{Name: "doubles", Limit: &serving.Limit{PerSecond: 1, Burst: 1}}
	c.Serve(&serving.Catalog{Apps: map[string]*serving.App{"doubles": app}, Keys: map[string]*serving.Key{key.ID: key}})
	now := time.Now()
	if err := c.Charge(Caller{}, app, 1, now); err != nil {
		t.Error(err)
	}
	r, ok := Refused(c.Charge(Caller{}, app, 1, now))
	if !ok || r.Reason != Limited || r.Wait != time.Second || !counted() {
		t.Errorf("%+v, %v", r, counted())
	}
	if rules := c.rules.Load(); rules.gate("doubles").limit == nil || len(rules.keys) != 1 || !rules.checks {
		t.Errorf("%+v", rules)
	}
	c.Serve(&serving.Catalog{})
	if rules := c.rules.Load(); rules.checks || len(rules.apps) != 0 || len(rules.keys) != 0 || rules.gate("doubles").limit != nil || counted() {
		t.Errorf("%+v", rules)
	}
}

// Before the first catalog a key may be one of those in it.
func TestAKeyBeforeTheFirstCatalog(t *testing.T) {
	started := false
	c := New(Config{RequireKeys: true, Started: func() bool { return started }, Metrics: obs.NewRegistry()})
	if _, err := c.Admit([]byte("some"), "a", time.Now()); !errors.Is(err, serving.ErrNoCatalog) {
		t.Error(err)
	}
	started = true
	_, err := c.Admit([]byte("some"), "a", time.Now())
	if r, ok := Refused(err); !ok || r.Reason != WrongKey {
		t.Error(err)
	}
	if _, err = c.Admit(nil, "a", time.Now()); err == nil {
		t.Error("no key is as good as one")
	}
}
