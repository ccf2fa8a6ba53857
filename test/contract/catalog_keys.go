package contract

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// keys adds keys, which let their holders in from then on, also after a restart, until
// they are revoked.
func (s suite) keys() {
	made := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	key, secret := serving.NewKey()
	key.Name, key.Role, key.Apps, key.Created = "ci", serving.RoleDeployer, []string{"a", "b"}, made
	key.Expires, key.Limit = made.Add(time.Hour), &serving.Limit{PerSecond: 2.5, Burst: 7}
	other, otherSecret := serving.NewKey()
	other.Name, other.Role = "anna", serving.RoleAdmin

	s.apply(catalog.AddKey{Key: *key})
	s.apply(catalog.AddKey{Key: *other})
	key.Apps[0], key.Limit.Burst = "changed by the caller", 9
	named := *other
	named.Name = "ci"
	s.refuse(catalog.ErrExists, catalog.AddKey{Key: named})
	third, _ := serving.NewKey()
	third.Role = serving.RoleViewer
	s.refuse(catalog.ErrInvalid, catalog.AddKey{Key: *third})
	third.Name = "ci"
	s.refuse(catalog.ErrExists, catalog.AddKey{Key: *third})
	s.apply(catalog.PutApp{App: app("a")}) // which leaves them alone

	s.store = s.reopen()
	cat := s.store.Catalog()
	got := cat.Key([]byte(secret), made)
	if got == nil || got.Name != "ci" || !slices.Equal(got.Apps, []string{"a", "b"}) || got.Limit.Burst != 7 || !got.Created.Equal(made) {
		s.Fatalf("got %+v", got)
	}
	if cat.Key([]byte(secret), made.Add(time.Hour)) != nil || cat.Key([]byte(otherSecret), made.Add(time.Hour)).Name != "anna" || len(cat.Keys) != 2 {
		s.Fatalf("got keys %v", cat.Keys)
	}
	s.apply(catalog.RevokeKey{ID: key.ID})
	s.refuse(catalog.ErrNotFound, catalog.RevokeKey{ID: key.ID})
	s.store = s.reopen()
	if cat := s.store.Catalog(); len(cat.Keys) != 1 || cat.Key([]byte(secret), made) != nil || cat.Key([]byte(otherSecret), made) == nil {
		s.Fatalf("got keys %v", cat.Keys)
	}
}

// previous looks for what a rollback goes back to.
func (s suite) previous() {
	want := func(version string) {
		s.Helper()
		if got := s.store.Catalog().Models["m"].Previous; got != version {
			s.Fatalf("the previous version is %q, want %q", got, version)
		}
	}
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	want("")
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	want("1")
	s.store = s.reopen()
	want("1")
	s.apply(catalog.SetCurrent{ID: id("m", "1")})
	want("2")
	s.keep(catalog.SetCurrent{ID: id("m", "1")})
	want("2")
	s.apply(catalog.DeleteVersion{ID: id("m", "2")})
	want("")
}

// prepared makes a version ahead of its registration, which completes it.
func (s suite) prepared() {
	ahead := version("m", "1")
	ahead.Prepared, ahead.Description, ahead.Labels, ahead.Replicas = true, "", nil, 3
	ahead.Container = serving.Container{Image: "registry.models.example/m:1", Env: map[string]string{"K": "v"}}
	s.apply(catalog.PutVersion{Version: ahead, KeepCurrent: true})
	s.store = s.reopen()
	s.wantCurrent("m", "")

	registered := version("m", "1")
	registered.Replicas, registered.Container = 1, serving.Container{Image: ahead.Container.Image}
	other := registered
	other.Container.Image = "registry.models.example/m:2"
	s.refuse(catalog.ErrExists, catalog.PutVersion{Version: other})
	cat := s.apply(catalog.PutVersion{Version: registered})
	s.wantCurrent("m", "1")
	v := cat.Version(id("m", "1"))
	if v.Prepared || v.Replicas != 3 || v.Description != registered.Description || !slices.Equal(v.Labels, registered.Labels) || v.Batch != registered.Batch || v.Container.Env["K"] != "v" {
		s.Fatalf("got version %+v", v)
	}
	s.refuse(catalog.ErrExists, catalog.PutVersion{Version: registered}) // it has other replicas
}
