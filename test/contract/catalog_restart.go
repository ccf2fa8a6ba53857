package contract

import (
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func (s suite) restart() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.apply(catalog.PutVersion{Version: version("m", "2")})
	s.apply(catalog.SetCurrent{ID: id("m", "1")})
	s.apply(catalog.PutVersion{Version: version("n", "1"), KeepCurrent: true})
	s.apply(catalog.PutApp{App: app("a", "m", "n")})
	s.apply(catalog.PutApp{App: app("b")})
	s.apply(catalog.Link{App: "b", Model: "n"})
	s.apply(catalog.Unlink{App: "b", Model: "n"})
	s.apply(catalog.PutVersion{Version: version("gone", "1")})
	s.apply(catalog.DeleteVersion{ID: id("gone", "1")})
	before := s.apply(catalog.PutApp{App: app("c")})

	s.store = s.reopen()
	s.wantSame(before, s.store.Catalog())
	s.wantLinks("a", "m", "n")
	s.wantCurrent("m", "1")
	s.apply(catalog.DeleteApp{Name: "c"})
}

// mergeFile starts with a configuration file, twice.
func (s suite) mergeFile() {
	s.apply(catalog.PutApp{App: app("other")})
	apps, versions := []serving.App{app("a", "m")}, []serving.Version{version("m", "1"), version("m", "2")}
	merge := func(notes int, revision uint64) {
		s.Helper()
		report, err := s.store.MergeFile(s.Context(), apps, versions, map[string]string{"m": "1"})
		if err != nil || len(report) != notes || s.store.Catalog().Revision != revision {
			s.Fatalf("got report %v, error %v, revision %d", report, err, s.store.Catalog().Revision)
		}
	}
	merge(4, 2)
	s.store = s.reopen()
	merge(0, 2)
	s.wantCurrent("m", "1")
	before := s.store.Catalog()
	if before.Apps["a"].Origin != serving.FromFile || before.Apps["other"] == nil {
		s.Errorf("got %s", text(before))
	}
	if report, err := s.store.MergeFile(s.Context(), append(apps, apps...), versions, nil); err == nil || report != nil || s.store.Catalog() != before {
		s.Errorf("got report %v and error %v for a file with one app twice", report, err)
	}
}

func (s suite) thousand() {
	const n = 250
	var all []catalog.Change
	for i := range n {
		model := numbered("model-", i)
		all = append(all,
			catalog.PutVersion{Version: version(model, "1")},
			catalog.PutVersion{Version: version(model, "2")},
			catalog.PutApp{App: app(numbered("app-", i), model)},
			catalog.PutApp{App: app(numbered("empty-", i))})
	}
	for i, change := range all {
		if cat, err := s.store.Apply(s.Context(), change, uint64(i)); err != nil || cat.Revision != uint64(i+1) {
			s.Fatalf("change %d: got %v and error %v", i, cat, err)
		}
	}
	before := s.store.Catalog()
	if len(before.Apps) != 2*n || len(before.Models) != n {
		s.Fatalf("got %d apps and %d models", len(before.Apps), len(before.Models))
	}
	s.store = s.reopen()
	s.wantSame(before, s.store.Catalog())
	s.apply(catalog.DeleteVersion{ID: id(numbered("model-", n-1), "2")})
}
