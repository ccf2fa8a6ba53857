package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestSteps takes random steps by the API and the file and holds every one of
// them against what a store and its readers rely on.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cat := &serving.Catalog{}
		stored := map[[2]string][]byte{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := encode(t, cat)
			next, err := drawStep(t, cat)
			if encode(t, cat) != before {
				t.Fatalf("the base has changed from\n%s\nto\n%s", before, encode(t, cat))
			}
			if err != nil {
				checkRefused(t, next, err)
				continue
			}
			checkCatalog(t, next)
			docs, err := catalog.Diff(cat, next)
			require.NoError(t, err)
			if same := next == cat; same != (len(docs) == 0) || !same && next.Revision != cat.Revision+1 {
				t.Fatalf("revision %d after %d with %d documents to write", next.Revision, cat.Revision, len(docs))
			}
			store(stored, docs)
			decoded, err := catalog.Decode(next.Revision, documents(stored))
			if err != nil || next.Revision > 0 && !reflect.DeepEqual(decoded, next) {
				t.Fatalf("decoded\n%s\nwith error %v, want\n%s", encode(t, decoded), err, encode(t, next))
			}
			cat = next
		}
	})
}

// TestAgain asks twice for the same: the second time, what is so already changes
// nothing, and what is gone already is not found.
func TestAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change, before := drawChange(t), drawCatalog(t)
		once, err := catalog.Apply(before, change, 0)
		if err != nil {
			return // refused
		}
		if put, ok := change.(catalog.PutVersion); ok {
			if old := before.Version(put.Version.ModelID); old != nil && old.Prepared {
				return // the first time completes the version with what was prepared, and so it is another one
			}
		}
		twice, err := catalog.Apply(once, change, 0)
		if want := again(before, change); !errors.Is(err, want) || want == nil && twice != once {
			t.Fatalf("%#v again: revision %v, error %v, want %v", change, twice, err, want)
		}
	})
}

// again is what comes of a change that was made already on top of a catalog.
func again(before *serving.Catalog, change catalog.Change) error {
	switch c := change.(type) {
	case catalog.DeleteApp, catalog.DeleteVersion, catalog.DeleteModel, catalog.DeleteStream, catalog.Unlink, catalog.RevokeKey:
		return catalog.ErrNotFound
	case catalog.Link, catalog.AddKey:
		return catalog.ErrExists
	case catalog.PutApp:
		if c.Create {
			return catalog.ErrExists
		}
	case catalog.PutVersion:
		old := before.Version(c.Version.ModelID)
		if old != nil && old.Prepared && !c.Version.Prepared && (old.Replicas != 0 || !maps.Equal(old.Container.Env, c.Version.Container.Env)) {
			return catalog.ErrExists // it was completed, and keeps what it was prepared with
		}
	}
	return nil
}

func TestRevision(t *testing.T) {
	cat := &serving.Catalog{Revision: 7}
	for _, revision := range []uint64{1, 6, 8} {
		next, err := catalog.Apply(cat, catalog.PutApp{App: app("a")}, revision)
		if !errors.Is(err, catalog.ErrConflict) || next != nil {
			t.Errorf("revision %d: %v, error %v", revision, next, err)
		}
	}
	for _, revision := range []uint64{0, 7} {
		next, err := catalog.Apply(cat, catalog.PutApp{App: app("a")}, revision)
		if err != nil || next.Revision != 8 {
			t.Errorf("revision %d: %v, error %v", revision, next, err)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	cat := must(t, &serving.Catalog{},
		catalog.PutVersion{Version: version("m", "1")},
		catalog.PutApp{App: app("a", "m")})
	labelled, floats := version("m", "1"), version("m", "2")
	labelled.Labels = []string{"x"}
	floats.InputType = serving.Floats
	f := func(change catalog.Change, revision uint64, want string) {
		t.Helper()
		if _, err := catalog.Apply(cat, change, revision); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f(catalog.PutApp{App: app("a"), Create: true}, 0, `app "a" already exists`)
	f(catalog.DeleteApp{Name: "b"}, 0, `app "b" does not exist`)
	f(catalog.PutVersion{Version: labelled}, 0, `version "1" of model "m" already exists with another definition, and versions are immutable: labels is ["x"], and was not there; use a new version name, or replace it (--replace, in the API replace=true), which creates a new generation`)
	f(catalog.PutVersion{Version: floats}, 0, `invalid: app "a" takes doubles, and its model "m" takes floats`)
	f(catalog.DeleteVersion{ID: id("m", "2")}, 0, `version "2" of model "m" does not exist`)
	f(catalog.DeleteModel{Name: "n"}, 0, `model "n" does not exist`)
	f(catalog.Link{App: "a", Model: "m"}, 0, `the link from app "a" to model "m" already exists`)
	f(catalog.Link{App: "a", Model: "n"}, 0, `model "n" does not exist`)
	f(catalog.Unlink{App: "a", Model: "n"}, 0, `the link from app "a" to model "n" does not exist`)
	f(catalog.SetCurrent{ID: id("n", "1")}, 0, `model "n" does not exist`)
	f(catalog.SetCurrent{ID: id("m", "2")}, 0, `version "2" of model "m" does not exist`)
	f(catalog.DeleteApp{Name: "a"}, 1, `the catalog has changed: it is at revision 2, not 1; read it again and repeat the change`)
}

func TestDeleteModel(t *testing.T) {
	before := must(t, &serving.Catalog{},
		catalog.PutVersion{Version: version("m", "1")}, catalog.PutVersion{Version: version("m", "2")}, catalog.PutVersion{Version: version("n", "1")},
		catalog.PutApp{App: app("a", "m", "n")}, catalog.PutApp{App: app("b", "n")})
	after := must(t, before, catalog.DeleteModel{Name: "m"})
	if after.Revision != before.Revision+1 || after.Models["m"] != nil || after.Models["n"] != before.Models["n"] {
		t.Errorf("revision %d after %d, with %v", after.Revision, before.Revision, after.Models)
	}
	if links := after.Apps["a"].Models; !slices.Equal(links, []string{"n"}) || after.Apps["b"] != before.Apps["b"] {
		t.Errorf("app a links %q", links)
	}
	entries, err := catalog.Audit(serving.Author{}, before, after, time.Now())
	require.NoError(t, err)
	var deleted []string
	for _, e := range entries {
		deleted = append(deleted, e.Action+" "+e.Kind+" "+e.Name)
	}
	if want := []string{"update app a", "delete model m", "delete version m:1", "delete version m:2"}; !slices.Equal(deleted, want) {
		t.Errorf("the audit log says %q", deleted)
	}
}

// must applies changes that have to succeed.
func must(t rapid.TB, cat *serving.Catalog, changes ...catalog.Change) *serving.Catalog {
	t.Helper()
	for _, change := range changes {
		next, err := catalog.Apply(cat, change, 0)
		if err != nil {
			t.Fatalf("%#v: %v", change, err)
		}
		cat = next
	}
	return cat
}

func checkRefused(t *rapid.T, next *serving.Catalog, err error) {
	kinds := 0
	for _, kind := range []error{catalog.ErrNotFound, catalog.ErrExists, catalog.ErrConflict, catalog.ErrInvalid} {
		if errors.Is(err, kind) {
			kinds++
		}
	}
	if kinds != 1 || next != nil {
		t.Fatalf("error %v is of %d kinds and comes with catalog %v", err, kinds, next)
	}
}

func checkCatalog(t *rapid.T, cat *serving.Catalog) {
	errs := []error{cat.Check()}
	for name, a := range cat.Apps {
		errs = append(errs, a.Check())
		if a.Name != name || a.Models == nil {
			t.Fatalf("app %q is %+v", name, a)
		}
	}
	for name, m := range cat.Models {
		if m.Name != name || len(m.Versions) == 0 {
			t.Fatalf("model %q is %+v", name, m)
		}
		for key, v := range m.Versions {
			errs = append(errs, v.Check())
			if v.ModelID != id(name, key) {
				t.Fatalf("version %q of model %q is %+v", key, name, v)
			}
		}
		if m.Versions[m.Previous] == nil && m.Previous != "" || m.Previous == m.Current && m.Current != "" {
			t.Fatalf("model %q had version %q before %q", name, m.Previous, m.Current)
		}
	}
	names := map[string]bool{}
	for id, k := range cat.Keys {
		errs = append(errs, k.Check())
		if k.ID != id || names[k.Name] {
			t.Fatalf("key %q is %+v; its name is there already: %v", id, k, names[k.Name])
		}
		names[k.Name] = true
	}
	for name, s := range cat.Streams {
		errs = append(errs, s.Check())
		if s.Name != name {
			t.Fatalf("stream %q is %+v", name, s)
		}
	}
	require.NoError(t, errors.Join(errs...))
}

// thousand is a catalog with a thousand objects.
func thousand(b *testing.B) *serving.Catalog {
	var changes []catalog.Change
	for i := range 500 {
		model := fmt.Sprintf("m-%d", i)
		changes = append(changes, catalog.PutVersion{Version: version(model, "1")}, catalog.PutApp{App: app(model, model)})
	}
	return must(b, &serving.Catalog{}, changes...)
}

// BenchmarkDiff finds one app that has changed among a thousand objects.
func BenchmarkDiff(b *testing.B) {
	before := thousand(b)
	changed := app("m-0", "m-0")
	changed.SLO += serving.Duration(time.Microsecond)
	after := must(b, before, catalog.PutApp{App: changed})
	b.ReportAllocs()
	for b.Loop() {
		if docs, err := catalog.Diff(before, after); err != nil || len(docs) != 1 {
			b.Fatal(docs, err)
		}
	}
}

// BenchmarkApply changes one app among a thousand objects.
func BenchmarkApply(b *testing.B) {
	cat := thousand(b)
	changed := app("m-0", "m-0")
	b.ReportAllocs()
	for b.Loop() {
		changed.SLO += serving.Duration(time.Microsecond)
		if _, err := catalog.Apply(cat, catalog.PutApp{App: changed}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// store does to the documents what a store does.
func store(stored map[[2]string][]byte, docs []catalog.Document) {
	for _, doc := range docs {
		if doc.JSON == nil {
			delete(stored, [2]string{doc.Kind, doc.Key})
		} else {
			stored[[2]string{doc.Kind, doc.Key}] = doc.JSON
		}
	}
}

func documents(stored map[[2]string][]byte) func(func(catalog.Document) bool) {
	var docs []catalog.Document
	for at, b := range stored {
		docs = append(docs, catalog.Document{Kind: at[0], Key: at[1], JSON: b})
	}
	return slices.Values(docs)
}
