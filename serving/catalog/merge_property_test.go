package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, f := drawCatalog(t), drawFile(t)
		after, report, err := f.merge(before)
		if err != nil {
			return // refused; TestSteps looks at that
		}
		checkFileIsIn(t, f, before, after)
		checkAPIObjectsAreLeft(t, f, before, after, report)
		if after == before && slices.ContainsFunc(report, func(n catalog.Note) bool { return !strings.Contains(n.Text, "stays current") }) {
			t.Fatalf("nothing has changed, and the report says\n%s", sentences(report))
		}
		again, report, err := f.merge(after)
		if err != nil || again != after {
			t.Fatalf("merged again: error %v, report\n%s", err, sentences(report))
		}
	})
}

// TestTheFileWinsOnlyWhereItHasChanged: a version that was made current since the file was
// merged stays so when the same file is merged again, and not when it says another one.
func TestTheFileWinsOnlyWhereItHasChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "versions")
		names := []string{"1", "2", "3", "4"}[:n]
		f := file{current: map[string]string{}}
		for _, name := range names {
			f.versions = append(f.versions, version("m", name))
		}
		pick := rapid.SampledFrom(append([]string{""}, names...))
		says := func() string {
			if given := f.current["m"]; given != "" {
				return given
			}
			return names[n-1]
		}
		cat, want, said := &serving.Catalog{}, "", ""
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "by API") && want != "" {
				want = rapid.SampledFrom(names).Draw(t, "current")
				next, err := catalog.Apply(cat, catalog.SetCurrent{ID: id("m", want)}, 0)
				require.NoError(t, err)
				cat = next
				continue
			}
			if given := pick.Draw(t, "given"); given == "" {
				delete(f.current, "m")
			} else {
				f.current["m"] = given
			}
			next, _, err := f.merge(cat)
			require.NoError(t, err)
			if now := says(); now != said {
				want, said = now, now
			}
			if cat = next; cat.Models["m"].Current != want {
				t.Fatalf("version %q is current, want %q", cat.Models["m"].Current, want)
			}
		}
	})
}

// checkFileIsIn wants the objects of the file, as they are, and no others of it. Where the file
// said the same before, another version may have been made current since.
func checkFileIsIn(t *rapid.T, f file, before, cat *serving.Catalog) {
	var want, got []string
	for _, a := range f.apps {
		a.Origin, a.Models = serving.FromFile, append([]string{}, a.Models...)
		a.DefaultOutput = strings.ToValidUTF8(a.DefaultOutput, "\uFFFD")
		want = append(want, encode(t, a))
	}
	for _, v := range f.versions {
		v.Origin = serving.FromFile
		want = append(want, encode(t, v))
		m, was, given := cat.Models[v.Model], before.Models[v.Model], f.current[v.Model]
		repeated := was != nil && was.FileSays == given
		if m.Current == "" || given != "" && m.Current != given && !repeated {
			t.Fatalf("the current version of model %q is %q, want %q", v.Model, m.Current, given)
		}
	}
	for _, object := range objects(cat) {
		if b := encode(t, object); strings.Contains(b, `"origin":"file"`) {
			got = append(got, b)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("of the file there are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkAPIObjectsAreLeft wants every object of the API that the file does not
// name as it was, but for links, and a warning for each of those.
func checkAPIObjectsAreLeft(t *rapid.T, f file, before, after *serving.Catalog, report catalog.Report) {
	for name, a := range before.Apps {
		if a.Origin == serving.FromFile || slices.ContainsFunc(f.apps, func(b serving.App) bool { return b.Name == name }) {
			continue
		}
		now := after.Apps[name]
		if now == nil || now.Origin != a.Origin || now.SLO != a.SLO {
			t.Fatalf("app %+v has become %+v", a, now)
		}
		for _, model := range a.Models {
			warned := strings.Contains(sentences(report), `WARN app "`+name+`" no longer links model "`+model+`"`)
			if slices.Contains(now.Models, model) == warned {
				t.Fatalf("app %q links %v and the report says\n%s", name, now.Models, sentences(report))
			}
		}
	}
	for _, m := range before.Models {
		for _, v := range m.Versions {
			if v.Origin == serving.FromFile || slices.ContainsFunc(f.versions, func(w serving.Version) bool { return w.ModelID == v.ModelID }) {
				continue
			}
			if after.Version(v.ModelID) != v {
				t.Fatalf("version %+v has become %+v", v, after.Version(v.ModelID))
			}
		}
	}
}
