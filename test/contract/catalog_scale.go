package contract

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func (s suite) wantServing(model, version string) {
	s.Helper()
	if got := s.store.Catalog().Models[model].Serving; got != version {
		s.Fatalf("model %q serves version %q, want %q", model, got, version)
	}
}

func (s suite) servingVersions() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.wantServing("m", "")
	s.apply(catalog.SetServing{id("m", "1")})
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.wantServing("m", "1")
	s.wantCurrent("m", "2")
	s.keep(catalog.SetServing{id("m", "1")})
	s.refuse(catalog.ErrNotFound, catalog.SetServing{id("m", "3")})
	s.refuse(catalog.ErrNotFound, catalog.SetServing{id("n", "1")})

	s.store = s.reopen()
	s.wantServing("m", "1")
	s.apply(catalog.SetServing{id("m", "2")})
	s.wantServing("m", "2")
	s.apply(catalog.DeleteVersion{ID: id("m", "2")})
	s.wantServing("m", "")
	s.wantCurrent("m", "")
}

func (s suite) scales() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	spec := &serving.ScaleSpec{Min: 0, Max: 8, Metric: serving.ScaleOnRate, Target: 12.5, Idle: serving.Duration(time.Minute)}
	cat := s.apply(catalog.SetScale{ID: id("m", "1"), Scale: spec})
	if v := cat.Version(id("m", "1")); v.Replicas != 0 || *v.Scale != *spec || v.Container.Env["L"] != "w" || v.Origin != serving.FromAPI {
		s.Fatalf("got version %+v", v)
	}
	s.keep(catalog.SetScale{ID: id("m", "1"), Scale: spec})
	spec.Max = 1 // the caller's own
	s.store = s.reopen()
	if v := s.store.Catalog().Version(id("m", "1")); v.Scale == nil || v.Scale.Max != 8 {
		s.Fatalf("got version %+v", v)
	}
	cat = s.apply(catalog.SetScale{ID: id("m", "1"), Replicas: 3})
	if v := cat.Version(id("m", "1")); v.Replicas != 3 || v.Scale != nil {
		s.Fatalf("got version %+v", v)
	}
	s.refuse(catalog.ErrInvalid, catalog.SetScale{ID: id("m", "1"), Replicas: serving.MaxReplicas + 1})
	s.refuse(catalog.ErrInvalid, catalog.SetScale{ID: id("m", "1"), Scale: &serving.ScaleSpec{Min: 2, Max: 1}})
	s.refuse(catalog.ErrNotFound, catalog.SetScale{ID: id("m", "2"), Replicas: 1})
}

func (s suite) pins() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	pin := &serving.Pin{Count: serving.Paused, Until: time.Date(2030, 1, 2, 3, 4, 5, 600, time.UTC), Reason: "a test"}
	s.apply(catalog.SetPin{ID: id("m", "1"), Pin: pin})
	s.keep(catalog.SetPin{ID: id("m", "1"), Pin: pin})
	s.store = s.reopen()
	if v := s.store.Catalog().Version(id("m", "1")); v.Pin == nil || *v.Pin != *pin || v.Replicas != 1 {
		s.Fatalf("got version %+v", v)
	}
	s.refuse(catalog.ErrInvalid, catalog.SetPin{ID: id("m", "1"), Pin: &serving.Pin{Count: serving.Paused - 1}})
	s.refuse(catalog.ErrNotFound, catalog.SetPin{ID: id("m", "2"), Pin: pin})
	s.apply(catalog.SetPin{ID: id("m", "1"), Pin: &serving.Pin{}})
	if cat := s.apply(catalog.SetPin{ID: id("m", "1")}); cat.Version(id("m", "1")).Pin != nil {
		s.Fatalf("got version %+v", cat.Version(id("m", "1")))
	}
	s.keep(catalog.SetPin{ID: id("m", "1")})
}
