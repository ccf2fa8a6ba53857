package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func TestKeys(t *testing.T) {
	given, secret := serving.NewKey()
	given.Name, given.Role, given.Apps = "ci", serving.RoleDeployer, []string{"a"}
	given.Limit = &serving.Limit{PerSecond: 3}
	cat := must(t, &serving.Catalog{}, catalog.AddKey{Key: *given}, catalog.PutApp{App: app("a")})
	given.Apps[0], given.Limit.PerSecond, given.Hash[0] = "b", 4, given.Hash[0]+1 // the caller's own
	got := cat.Key([]byte(secret), time.Now())
	if got == nil || got.Name != "ci" || got.Apps[0] != "a" || got.Limit.PerSecond != 3 {
		t.Fatalf("got %+v", got)
	}
	if cat = must(t, cat, catalog.RevokeKey{ID: got.ID}); cat.Key([]byte(secret), time.Now()) != nil || len(cat.Keys) != 0 {
		t.Errorf("got %+v", cat.Keys)
	}
}

func TestKeyErrors(t *testing.T) {
	cat := must(t, &serving.Catalog{}, catalog.AddKey{Key: key("aaaaaaaaaa", "ci")})
	admin, damaged := key("bbbbbbbbbb", "anna"), key("bbbbbbbbbb", "anna")
	admin.Role, admin.Apps, admin.Limit = serving.RoleAdmin, []string{"a", "A/"}, &serving.Limit{}
	damaged.Hash = damaged.Hash[1:]
	f := func(change catalog.Change, kind error, words ...string) {
		t.Helper()
		next, err := catalog.Apply(cat, change, 0)
		if !errors.Is(err, kind) || next != nil {
			t.Fatalf("got %v and error %v, want %v", next, err, kind)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("error %q lacks %q", err, w)
			}
		}
	}
	f(catalog.AddKey{Key: key("aaaaaaaaaa", "anna")}, catalog.ErrExists, `key "aaaaaaaaaa" already exists`)
	f(catalog.AddKey{Key: key("bbbbbbbbbb", "ci")}, catalog.ErrExists, `a key named "ci" already exists; revoke it, or use another name`)
	f(catalog.AddKey{Key: key("bbbbbbbbbb", "")}, catalog.ErrInvalid, "needs a name")
	f(catalog.AddKey{Key: admin}, catalog.ErrInvalid, "leave apps out", `name "A/"`, "per_second must be above 0")
	f(catalog.AddKey{Key: damaged}, catalog.ErrInvalid, "is damaged")
	f(catalog.RevokeKey{ID: "bbbbbbbbbb"}, catalog.ErrNotFound, `key "bbbbbbbbbb" does not exist`)

	full := *cat
	full.Keys = map[string]*serving.Key{}
	for i := range serving.MaxKeys {
		k := key(fmt.Sprintf("%010d", i), fmt.Sprint(i))
		full.Keys[k.ID] = &k
	}
	cat = &full
	f(catalog.AddKey{Key: key("bbbbbbbbbb", "anna")}, catalog.ErrInvalid, "there are 10000 keys", "revoke some")
}

// An app that has a name from before it was reserved stays and can be changed; no new one is made.
func TestNewlyReservedNames(t *testing.T) {
	v1 := app("v1")
	v1.Origin = serving.FromAPI
	old := &serving.Catalog{Apps: map[string]*serving.App{"v1": &v1}}
	changed := app("v1")
	changed.Description = "it stays"
	if next, err := catalog.Apply(old, catalog.PutApp{App: changed}, 0); err != nil || next.Apps["v1"].Description != "it stays" {
		t.Error(err)
	}
	if _, err := catalog.Apply(&serving.Catalog{}, catalog.PutApp{App: app("openai")}, 0); !errors.Is(err, catalog.ErrInvalid) {
		t.Error(err)
	}
}
