package contract

import (
	"context"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func id(model, version string) serving.ModelID {
	return serving.ModelID{Model: model, Version: version}
}

func (s suite) empty() {
	cat := s.store.Catalog()
	if cat.Revision != 0 || len(cat.Apps) != 0 || len(cat.Models) != 0 {
		s.Fatalf("got %s", text(cat))
	}
	s.refuse(catalog.ErrNotFound, catalog.DeleteApp{Name: "a"})
	s.refuse(catalog.ErrNotFound, catalog.DeleteVersion{ID: id("m", "1")})
	s.refuse(catalog.ErrNotFound, catalog.SetCurrent{ID: id("m", "1")})
	s.refuse(catalog.ErrNotFound, catalog.Link{App: "a", Model: "m"})
	s.refuse(catalog.ErrNotFound, catalog.Unlink{App: "a", Model: "m"})
}

func (s suite) apps() {
	cat := s.apply(catalog.PutApp{App: app("a"), Create: true})
	if got := cat.Apps["a"]; got.SLO.Std() != 20*time.Millisecond || got.InputType != serving.Doubles || got.Origin != serving.FromAPI {
		s.Fatalf("got app %+v", got)
	}
	s.refuse(catalog.ErrExists, catalog.PutApp{App: app("a"), Create: true})

	changed := app("a")
	changed.SLO = serving.Duration(time.Second)
	changed.DefaultOutput = `{"text": "none \u00e9"}`
	if got := s.apply(catalog.PutApp{App: changed}).Apps["a"]; got.SLO.Std() != time.Second || got.DefaultOutput != changed.DefaultOutput {
		s.Fatalf("got app %+v", got)
	}
	s.apply(catalog.PutApp{App: app("b")})

	cat = s.apply(catalog.DeleteApp{Name: "a"})
	if cat.Apps["a"] != nil || cat.Apps["b"] == nil {
		s.Fatalf("got apps %v", cat.Apps)
	}
	s.refuse(catalog.ErrNotFound, catalog.DeleteApp{Name: "a"})
	s.apply(catalog.PutApp{App: app("a"), Create: true})
}

func (s suite) versions() {
	cat := s.apply(catalog.PutVersion{Version: version("m", "1")})
	if v := cat.Version(id("m", "1")); v.Container.Env["L"] != "w" || v.Batch.MaxSize != 8 || v.Origin != serving.FromAPI {
		s.Fatalf("got version %+v", v)
	}
	s.wantCurrent("m", "1")
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.wantCurrent("m", "2")
	s.apply(catalog.PutVersion{Version: version("m", "3"), KeepCurrent: true})
	s.wantCurrent("m", "2")
	s.apply(catalog.PutVersion{Version: version("other", "1"), KeepCurrent: true})
	s.wantCurrent("other", "")

	staged := version("staged", "1")
	staged.Batch = serving.BatchSpec{}
	staged.Stages = serving.Pipeline{{Name: "a", Workers: 2, CPUs: []int{0, 1}}, {Name: "b", Batch: serving.StageBatch{Strategy: "aimd", Delay: serving.Duration(time.Millisecond)}}}
	s.apply(catalog.PutVersion{Version: staged})
	s.keep(catalog.PutVersion{Version: staged})
	if got := s.store.Catalog().Version(staged.ModelID).Stages; got.JSON() != staged.Stages.JSON() {
		s.Fatalf("got stages %s, want %s", got.JSON(), staged.Stages.JSON())
	}

	changed := version("m", "1")
	changed.Labels = []string{"another"}
	s.refuse(catalog.ErrExists, catalog.PutVersion{Version: changed})
	s.wantCurrent("m", "2")
}

func (s suite) deletedVersions() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.apply(catalog.PutApp{App: app("a", "m")})
	s.apply(catalog.PutApp{App: app("b")})
	s.apply(catalog.Link{App: "b", Model: "m"})

	s.apply(catalog.DeleteVersion{ID: id("m", "2")})
	s.wantCurrent("m", "")
	s.wantLinks("a", "m")
	s.refuse(catalog.ErrNotFound, catalog.DeleteVersion{ID: id("m", "2")})

	s.apply(catalog.SetCurrent{ID: id("m", "1")})
	if cat := s.apply(catalog.DeleteVersion{ID: id("m", "1")}); cat.Models["m"] != nil {
		s.Fatalf("a model without versions is left: %+v", cat.Models["m"])
	}
	s.wantLinks("a")
	s.wantLinks("b")

	changed := version("m", "1")
	changed.Labels = nil
	s.apply(catalog.PutVersion{Version: changed})
	s.wantLinks("a")
}

func (s suite) links() {
	s.apply(catalog.PutApp{App: app("a")})
	for _, model := range []string{"m2", "m1", "m3"} {
		s.apply(catalog.PutVersion{Version: version(model, "1")})
		s.apply(catalog.Link{App: "a", Model: model})
	}
	s.wantLinks("a", "m2", "m1", "m3")
	s.refuse(catalog.ErrExists, catalog.Link{App: "a", Model: "m1"})
	s.refuse(catalog.ErrNotFound, catalog.Link{App: "a", Model: "m4"})
	s.refuse(catalog.ErrNotFound, catalog.Link{App: "b", Model: "m1"})

	s.apply(catalog.Unlink{App: "a", Model: "m2"})
	s.wantLinks("a", "m1", "m3")
	s.refuse(catalog.ErrNotFound, catalog.Unlink{App: "a", Model: "m2"})
	s.refuse(catalog.ErrNotFound, catalog.Unlink{App: "b", Model: "m1"})

	s.apply(catalog.PutApp{App: app("a", "m3")})
	s.wantLinks("a", "m3")
}

func (s suite) currentVersions() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.apply(catalog.SetCurrent{ID: id("m", "1")})
	s.wantCurrent("m", "1")
	s.refuse(catalog.ErrNotFound, catalog.SetCurrent{ID: id("m", "3")})
	s.refuse(catalog.ErrNotFound, catalog.SetCurrent{ID: id("n", "1")})
}

func (s suite) noChange() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.apply(catalog.PutApp{App: app("a", "m")})
	before := s.store.Catalog()
	for _, change := range []catalog.Change{
		catalog.PutApp{App: app("a", "m")},
		catalog.PutVersion{Version: version("m", "1")},
		catalog.SetCurrent{ID: id("m", "2")},
	} {
		cat, err := s.store.Apply(s.Context(), change, before.Revision)
		if err != nil {
			s.Fatalf("%T: %v", change, err)
		}
		s.wantSame(before, cat)
	}
	s.wantSame(before, s.store.Catalog())
}

func (s suite) invalid() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.apply(catalog.PutApp{App: app("a", "m")})

	noSLO := app("b")
	noSLO.SLO = 0
	texts := version("m", "2")
	texts.InputType = serving.Strings
	floats := app("a", "m")
	floats.InputType = serving.Floats
	for _, change := range []catalog.Change{
		catalog.PutApp{App: app("admin")},
		catalog.PutApp{App: app("a/b")},
		catalog.PutApp{App: noSLO},
		catalog.PutApp{App: app("b", "unknown")},
		catalog.PutApp{App: app("b", "m", "m")},
		catalog.PutApp{App: floats},
		catalog.PutVersion{Version: version("M", "1")},
		catalog.PutVersion{Version: version("m", "")},
		catalog.PutVersion{Version: texts},
	} {
		s.refuse(catalog.ErrInvalid, change)
	}

	s.apply(catalog.PutVersion{Version: texts, KeepCurrent: true})
	s.refuse(catalog.ErrInvalid, catalog.SetCurrent{ID: texts.ModelID})
	floats = app("b")
	floats.InputType = serving.Floats
	s.apply(catalog.PutApp{App: floats})
	s.refuse(catalog.ErrInvalid, catalog.Link{App: "b", Model: "m"})
}

func (s suite) endedContext() {
	ctx, cancel := context.WithCancelCause(s.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	cat, err := s.store.Apply(ctx, catalog.PutApp{App: app("a")}, 0)
	if !errors.Is(err, why) || cat != nil {
		s.Fatalf("got %v and error %v", cat, err)
	}
	if cat := s.store.Catalog(); cat.Revision != 0 {
		s.Fatalf("got %s", text(cat))
	}
}
