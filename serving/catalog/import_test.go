package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestImportProperties compares an Import with a Merge: without Keep it is the same but
// for what only the file of local mode remembers, and with it, it takes nothing away.
func TestImportProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, f := drawCatalog(t), drawFile(t)
		forgetFile(before) // to which a Merge yields, and an Import does not
		merged, want, mergeErr := f.merge(before)
		var report catalog.Report
		change := f.change(false)
		change.Report = &report
		imported, err := catalog.Apply(before, change, 0)
		forgetFile(imported, merged)
		if (err == nil) != (mergeErr == nil) || err == nil && (encode(t, imported) != encode(t, merged) || sentences(report) != sentences(want)) {
			t.Fatalf("imported %s with error %v and report\n%s\nmerged %s with error %v and report\n%s",
				encode(t, imported), err, sentences(report), encode(t, merged), mergeErr, sentences(want))
		}
		kept, err := catalog.Apply(before, f.change(true), 0)
		if err != nil {
			if !errors.Is(err, catalog.ErrInvalid) || kept != nil {
				t.Fatalf("got %v and error %v", kept, err)
			}
			return
		}
		forgetFile(kept)
		checkFileIsIn(t, file{apps: f.apps, versions: f.versions, current: f.current}, &serving.Catalog{}, only(kept, f))
		for name := range before.Apps {
			if kept.Apps[name] == nil {
				t.Fatalf("app %q is gone", name)
			}
		}
		for _, m := range before.Models {
			for _, v := range m.Versions {
				if kept.Version(v.ModelID) == nil {
					t.Fatalf("version %v is gone", v.ModelID)
				}
			}
		}
	})
}

// forgetFile clears what the file of local mode said was current, which of two files brought an
// object, and the revision, which may be one more for what the file said alone.
func forgetFile(catalogs ...*serving.Catalog) {
	for _, cat := range catalogs {
		if cat == nil {
			continue
		}
		cat.Revision = 0
		for _, a := range cat.Apps {
			if a.Origin == serving.FromApply {
				a.Origin = serving.FromFile
			}
		}
		for _, m := range cat.Models {
			m.FileSays = ""
			for _, v := range m.Versions {
				if v.Origin == serving.FromApply {
					v.Origin = serving.FromFile
				}
			}
		}
	}
}

// only is a catalog without what an earlier file has left.
func only(cat *serving.Catalog, f file) *serving.Catalog {
	named := map[string]bool{}
	for _, a := range f.apps {
		named[a.Name] = true
	}
	for _, v := range f.versions {
		named[v.String()] = true
	}
	left := &serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}}
	for name, a := range cat.Apps {
		if named[name] {
			left.Apps[name] = a
		}
	}
	for name, m := range cat.Models {
		some := *m
		some.Versions = map[string]*serving.Version{}
		for version, v := range m.Versions {
			if named[v.String()] {
				some.Versions[version] = v
			}
		}
		left.Models[name] = &some
	}
	return left
}

func TestImportKeeps(t *testing.T) {
	first := must(t, &serving.Catalog{}, catalog.Import{Apps: []serving.App{app("a", "m")}, Versions: []serving.Version{version("m", "1")}})
	second := catalog.Import{Apps: []serving.App{app("b", "m")}, Versions: []serving.Version{version("m", "2")}, Keep: true}
	if got := short(must(t, first, second)); got != "a(apply)->m b(apply)->m m:1(apply),2(apply)*" {
		t.Errorf("got %s", got)
	}
	second.Keep = false
	if got := short(must(t, first, second)); got != "b(apply)->m m:2(apply)*" {
		t.Errorf("got %s", got)
	}
	second.Current = map[string]string{"m": "3"}
	var report catalog.Report
	second.Report = &report
	if next, err := catalog.Apply(first, second, 0); !errors.Is(err, catalog.ErrInvalid) || next != nil || report != nil {
		t.Errorf("got %v, error %v and report %v", next, err, report)
	}
}

// TestStartAndApply: the file of a start takes away what a start brought, and nothing else; one that
// is applied with Keep off takes away what either brought.
func TestStartAndApply(t *testing.T) {
	start := func(cat *serving.Catalog, apps []serving.App, versions ...serving.Version) (*serving.Catalog, string) {
		t.Helper()
		next, report, err := catalog.Merge(cat, apps, versions, nil)
		require.NoError(t, err)
		return next, sentences(report)
	}
	began, _ := start(&serving.Catalog{}, []serving.App{app("a", "m")}, version("m", "1"))
	applied := must(t, began, catalog.Import{Apps: []serving.App{app("a", "m"), app("b", "m"), app("c", "n")}, Versions: []serving.Version{version("m", "1"), version("m", "2"), version("n", "1")}, Keep: true})
	if got := short(applied); got != "a(file)->m b(apply)->m c(apply)->n m:1(file),2(apply)* n:1(apply)*" {
		t.Fatalf("applied: %s", got)
	}
	for name, tt := range map[string]struct {
		apps     []serving.App
		versions []serving.Version
		want     string
		says     string
	}{
		"nothing": {nil, nil, "b(apply)->m c(apply)->n m:2(apply)* n:1(apply)*", ""},
		"another": {[]serving.App{app("d", "o")}, []serving.Version{version("o", "1")}, "b(apply)->m c(apply)->n d(file)->o m:2(apply)* n:1(apply)* o:1(file)*", ""},
		"the same": {[]serving.App{app("a", "m")}, []serving.Version{version("m", "1")},
			"a(file)->m b(apply)->m c(apply)->n m:1(file),2(apply)* n:1(apply)*", `"2", applied as a file, stays current`},
		"what was applied": {[]serving.App{app("c", "n")}, []serving.Version{version("n", "1")},
			"b(apply)->m c(file)->n m:2(apply)* n:1(file)*", `app "c", applied as a file, is the file's from now on`},
	} {
		next, says := start(applied, tt.apps, tt.versions...)
		if got := short(next); got != tt.want || !strings.Contains(says, tt.says) {
			t.Errorf("a start with %s: %s, want %s\n%s", name, got, tt.want, says)
		}
	}
	pruned := must(t, applied, catalog.Import{Apps: []serving.App{app("b", "m")}, Versions: []serving.Version{version("m", "2")}})
	if got := short(pruned); got != "b(apply)->m m:2(apply)*" {
		t.Errorf("pruned: %s", got)
	}
}
