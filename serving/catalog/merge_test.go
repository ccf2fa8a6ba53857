package catalog_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// mergeCase merges a last file into what an earlier one and the API have made.
type mergeCase struct {
	name  string
	first file             // merged into an empty catalog
	api   []catalog.Change // and then changed
	file  file
	want  string // the catalog, see short
	notes string // the report, see sentences
}

func (c mergeCase) run(t *testing.T) {
	before, _, err := c.first.merge(&serving.Catalog{})
	require.NoError(t, err)
	before = must(t, before, c.api...)
	after, report, err := c.file.merge(before)
	require.NoError(t, err)
	if got := short(after); got != c.want {
		t.Errorf("got catalog %s, want %s", got, c.want)
	}
	if got := sentences(report); got != c.notes {
		t.Errorf("got report\n%s\nwant\n%s", got, c.notes)
	}
	unchanged := encode(t, after) == encode(t, before)
	if unchanged != (after == before) || !unchanged && after.Revision != before.Revision+1 {
		t.Errorf("revision %d after %d; unchanged: %v", after.Revision, before.Revision, unchanged)
	}
}

func run(t *testing.T, cases []mergeCase) {
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

func slow(a serving.App) serving.App {
	a.SLO = serving.Duration(time.Minute)
	return a
}

func floats(v serving.Version) serving.Version {
	v.InputType = serving.Floats
	return v
}

func labelled(v serving.Version) serving.Version {
	v.Labels = []string{"x"}
	return v
}

func apps(as ...serving.App) file { return file{apps: as} }

func versions(vs ...serving.Version) file { return file{versions: vs} }

func api(changes ...catalog.Change) []catalog.Change { return changes }

func put(v serving.Version) catalog.Change { return catalog.PutVersion{Version: v} }

func TestMergeWhole(t *testing.T) {
	run(t, []mergeCase{{
		name: "everything is new",
		file: file{apps: []serving.App{app("a", "m")}, versions: []serving.Version{version("m", "2"), version("m", "1")}},
		want: "a(file)->m m:1(file)*,2(file)",
		notes: `INFO version "1" of model "m" is new in the file
INFO version "2" of model "m" is new in the file
INFO model "m": version "1" is current now
INFO app "a" is new in the file`,
	}, {
		name:  "nothing has changed",
		first: file{apps: []serving.App{app("a", "m")}, versions: []serving.Version{version("m", "1")}},
		file:  file{apps: []serving.App{app("a", "m")}, versions: []serving.Version{version("m", "1")}},
		want:  "a(file)->m m:1(file)*",
	}, {
		name: "what the API made stays",
		api:  api(put(version("m", "1")), catalog.PutApp{App: app("a", "m")}),
		want: "a(api)->m m:1(api)*",
	}, {
		name:  "what is gone from the file goes",
		first: file{apps: []serving.App{app("a", "m")}, versions: []serving.Version{version("m", "1"), version("m", "2")}},
		file:  versions(version("m", "1")),
		want:  "m:1(file)*",
		notes: `INFO version "2" of model "m" is no longer in the file and is removed
INFO model "m": version "1" is current now
INFO app "a" is no longer in the file and is removed`,
	}})
}

func TestMergeApps(t *testing.T) {
	run(t, []mergeCase{{
		name:  "an app of the file changes",
		first: apps(app("a")),
		file:  apps(slow(app("a"))),
		want:  "a(file)",
		notes: `INFO app "a" is now as the file defines it`,
	}, {
		name:  "the file wins over an app of the API",
		api:   api(catalog.PutApp{App: slow(app("a"))}),
		file:  apps(app("a")),
		want:  "a(file)",
		notes: `WARN app "a": the definition in the file replaces the one made through the API`,
	}, {
		name:  "the file takes an equal app over",
		api:   api(catalog.PutApp{App: app("a")}),
		file:  apps(app("a")),
		want:  "a(file)",
		notes: `INFO app "a", made through the API, is the file's from now on`,
	}, {
		name:  "the file takes a link back that the API made to its app",
		first: apps(app("a")),
		api:   api(put(version("m", "1")), catalog.Link{App: "a", Model: "m"}),
		file:  apps(app("a")),
		want:  "a(file) m:1(api)*",
		notes: `INFO app "a" is now as the file defines it`,
	}, {
		name:  "an app that the API replaced outlives its place in the file",
		first: apps(app("a")),
		api:   api(catalog.PutApp{App: slow(app("a"))}),
		want:  "a(api)",
	}, {
		name:  "what the API deleted comes back",
		first: apps(app("a")),
		api:   api(catalog.DeleteApp{Name: "a"}),
		file:  apps(app("a")),
		want:  "a(file)",
		notes: `INFO app "a" is new in the file`,
	}})
}

func TestMergeVersions(t *testing.T) {
	run(t, []mergeCase{{
		name:  "a version of the file changes",
		first: versions(version("m", "1")),
		file:  versions(labelled(version("m", "1"))),
		want:  "m:1(file)*[x]",
		notes: `WARN version "1" of model "m" is now as the file defines it`,
	}, {
		name:  "the file wins over a version of the API",
		api:   api(put(labelled(version("m", "1")))),
		file:  versions(version("m", "1")),
		want:  "m:1(file)*",
		notes: `WARN version "1" of model "m": the definition in the file replaces the one made through the API`,
	}, {
		name:  "the file takes an equal version over",
		api:   api(put(version("m", "1"))),
		file:  versions(version("m", "1")),
		want:  "m:1(file)*",
		notes: `INFO version "1" of model "m", made through the API, is the file's from now on`,
	}})
}

func TestMergeLinks(t *testing.T) {
	run(t, []mergeCase{{
		name:  "a link of the API goes with the model of the file",
		first: versions(version("m", "1")),
		api:   api(catalog.PutApp{App: app("a", "m")}),
		want:  "a(api)",
		notes: `INFO version "1" of model "m" is no longer in the file and is removed
WARN app "a" no longer links model "m", which the file has removed or given another input type`,
	}, {
		name:  "a link of the API goes with the input type of the model",
		first: versions(version("m", "1")),
		api:   api(catalog.PutApp{App: app("a", "m")}),
		file:  versions(floats(version("m", "1"))),
		want:  "a(api) m:1(file)*",
		notes: `WARN version "1" of model "m" is now as the file defines it
WARN version "1" of model "m" is redefined as a new generation, whose replicas start again: input_type was "doubles" and is "floats"
WARN app "a" no longer links model "m", which the file has removed or given another input type`,
	}, {
		name:  "a link of the API stays while the model goes on in another version",
		first: versions(version("m", "1")),
		api:   api(catalog.PutApp{App: app("a", "m")}),
		file:  versions(version("m", "2")),
		want:  "a(api)->m m:2(file)*",
		notes: `INFO version "2" of model "m" is new in the file
INFO version "1" of model "m" is no longer in the file and is removed
INFO model "m": version "2" is current now`,
	}})
}

func TestMergeCurrent(t *testing.T) {
	run(t, []mergeCase{{
		name: "the given version is current",
		file: file{versions: []serving.Version{version("m", "1"), version("m", "2")}, current: map[string]string{"m": "1"}},
		want: "m:1(file)*,2(file)",
		notes: `INFO version "1" of model "m" is new in the file
INFO version "2" of model "m" is new in the file
INFO model "m": version "1" is current now`,
	}, {
		name:  "a new last version becomes current",
		first: versions(version("m", "1")),
		file:  versions(version("m", "1"), version("m", "2")),
		want:  "m:1(file),2(file)*",
		notes: `INFO version "2" of model "m" is new in the file
INFO model "m": version "2" is current now; it was "1"`,
	}, {
		name:  "a rollback through the API stays",
		first: versions(version("m", "1"), version("m", "2")),
		api:   api(catalog.SetCurrent{ID: id("m", "1")}),
		file:  versions(version("m", "1"), version("m", "2")),
		want:  "m:1(file)*,2(file)",
		notes: `INFO model "m": version "1", made current since the file was read last, stays current; the file says "2"`,
	}, {
		name:  "until the file says another version",
		first: versions(version("m", "1"), version("m", "9"), version("m", "2")),
		api:   api(catalog.SetCurrent{ID: id("m", "1")}),
		file:  versions(version("m", "1"), version("m", "2"), version("m", "9")),
		want:  "m:1(file),2(file),9(file)*",
		notes: `WARN model "m": version "9" is current now, as the file says; it was "1"`,
	}, {
		name:  "a model may lose its current version with the file",
		first: versions(version("m", "1")),
		api:   api(catalog.PutVersion{Version: version("m", "9"), KeepCurrent: true}),
		want:  "m:9(api)",
		notes: `INFO version "1" of model "m" is no longer in the file and is removed
WARN model "m": version "1" was current and is removed; make another one current`,
	}})
}

func TestMergeCurrentOfAPI(t *testing.T) {
	run(t, []mergeCase{{
		name:  "a current version of the API stays current",
		first: versions(version("m", "1")),
		api:   api(put(version("m", "9"))),
		file:  versions(version("m", "1")),
		want:  "m:1(file),9(api)*",
		notes: `INFO model "m": version "9", made through the API, stays current, and the file's "1" waits`,
	}, {
		name:  "until the file has a new last version",
		first: versions(version("m", "1")),
		api:   api(put(version("m", "9"))),
		file:  versions(version("m", "1"), version("m", "2")),
		want:  "m:1(file),2(file)*,9(api)",
		notes: `INFO version "2" of model "m" is new in the file
INFO model "m": version "2" is current now; it was "9"`,
	}, {
		name:  "or gives another current version than it did",
		first: versions(version("m", "1"), version("m", "2")),
		api:   api(put(version("m", "9"))),
		file:  file{versions: []serving.Version{version("m", "1"), version("m", "2")}, current: map[string]string{"m": "1"}},
		want:  "m:1(file)*,2(file),9(api)",
		notes: `WARN model "m": version "1" is current now, as the file says; it was "9"`,
	}, {
		name:  "the file may give a version of the API",
		api:   api(put(version("m", "9")), catalog.PutVersion{Version: version("m", "1")}),
		file:  file{current: map[string]string{"m": "9"}},
		want:  "m:1(api),9(api)*",
		notes: `WARN model "m": version "9" is current now, as the file says; it was "1"`,
	}, {
		name:  "the last version of the file becomes current when the API deleted its own",
		first: versions(version("m", "1")),
		api:   api(put(version("m", "9")), catalog.DeleteVersion{ID: id("m", "9")}),
		file:  versions(version("m", "1")),
		want:  "m:1(file)*",
		notes: `INFO model "m": version "1" is current now`,
	}})
}

func TestMergeInvalid(t *testing.T) {
	cat := must(t, &serving.Catalog{}, catalog.PutVersion{Version: version("m", "1")})
	noSLO, other := app("a"), app("a", "m")
	noSLO.SLO = 0
	other.InputType = serving.Floats
	f := func(file file, want ...string) {
		t.Helper()
		next, report, err := file.merge(cat)
		if !errors.Is(err, catalog.ErrInvalid) || next != nil || report != nil {
			t.Fatalf("got %v, report %v, error %v", next, report, err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("error %q lacks %q", err, w)
			}
		}
	}
	f(file{apps: []serving.App{app("b"), noSLO, app("B/"), app("b")}}, `"a": latency_slo`, `name "B/"`, `app "b" is defined twice`)
	f(file{versions: []serving.Version{version("n", "1"), version("N", "1"), version("n", "1")}}, `name "N"`, `version "1" of model "n" is defined twice`)
	f(file{apps: []serving.App{app("a", "unknown")}}, `links model "unknown", which does not exist`)
	f(file{apps: []serving.App{other}}, `takes floats, and its model "m" takes doubles`)
	f(file{current: map[string]string{"m": "2"}}, `the current version of model "m" is to be "2", which does not exist`)
	f(file{current: map[string]string{"n": "1"}}, `the current version of model "n" is to be "1", which does not exist`)
}

// short is a catalog in a line: apps with their links, versions with a star at
// the current one, and labels.
func short(cat *serving.Catalog) string {
	var words []string
	for _, name := range []string{"a", "b", "c", "d"} {
		if a := cat.Apps[name]; a != nil {
			word := name + "(" + string(a.Origin) + ")"
			if len(a.Models) > 0 {
				word += "->" + strings.Join(a.Models, ",")
			}
			words = append(words, word)
		}
	}
	for _, name := range []string{"m", "n", "o"} {
		var versions []string
		for _, v := range []string{"1", "2", "9"} {
			if v := cat.Version(id(name, v)); v != nil {
				word := v.Version + "(" + string(v.Origin) + ")"
				if cat.Models[name].Current == v.Version {
					word += "*"
				}
				if len(v.Labels) > 0 {
					word += "[" + strings.Join(v.Labels, ",") + "]"
				}
				versions = append(versions, word)
			}
		}
		if versions != nil {
			words = append(words, name+":"+strings.Join(versions, ","))
		}
	}
	return strings.Join(words, " ")
}

func sentences(report catalog.Report) string {
	var lines []string
	for _, n := range report {
		lines = append(lines, slog.Level.String(n.Level)+" "+n.Text)
	}
	return strings.Join(lines, "\n")
}

// TestDeployedByTheFile has a version of the file say so, and nothing more of those that stay.
func TestDeployedByTheFile(t *testing.T) {
	merge := func(cat *serving.Catalog, v serving.Version) *serving.Catalog {
		next, _, err := catalog.Merge(cat, nil, []serving.Version{v}, nil)
		require.NoError(t, err)
		return next
	}
	v := version("m", "1")
	cat := merge(&serving.Catalog{}, v)
	d := cat.Version(v.ModelID).Deployed
	if d == nil || d.By != serving.ByFile || d.Client != "" || time.Since(d.At) > time.Minute {
		t.Fatalf("it is deployed by %+v", d)
	}
	v.Replicas = 3
	if cat = merge(cat, v); cat.Version(v.ModelID).Deployed != d {
		t.Errorf("with more replicas it is deployed by %+v", cat.Version(v.ModelID).Deployed)
	}
	renewed, err := catalog.Apply(cat, catalog.Signed{Change: catalog.Renew{Old: cat.Version(v.ModelID).Definition()}, By: serving.Author{Who: "watch"}}, 0)
	if err != nil || renewed.Version(v.ModelID).Deployed.By != "watch" {
		t.Errorf("renewed it is deployed by %+v: %v", renewed.Version(v.ModelID).Deployed, err)
	}
}
