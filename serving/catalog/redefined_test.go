package catalog_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestGenerationProperties takes steps by the API and the file: a version keeps its
// generation exactly while what its answers may depend on stays, and none comes twice.
func TestGenerationProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cat := &serving.Catalog{}
		belongs := map[string]string{} // what a generation stands for
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			next, err := drawStep(t, cat)
			if v := cat.Version(drawID(t)); v != nil && rapid.Bool().Draw(t, "renew") {
				next, err = catalog.Apply(cat, catalog.Renew{Old: v.Definition()}, 0)
				if err != nil || next.Version(v.ModelID).Generation == v.Generation {
					t.Fatalf("%v is not renewed: %v", v.ModelID, err)
				}
			}
			if err != nil {
				continue
			}
			for _, m := range next.Models {
				for _, v := range m.Versions {
					checkGeneration(t, cat.Version(v.ModelID), v, belongs)
				}
			}
			cat = next
		}
	})
}

func checkGeneration(t *rapid.T, old, v *serving.Version, belongs map[string]string) {
	answers := answersOf(t, v)
	known, was := belongs[v.Generation]
	switch {
	case v.Generation == "":
		t.Fatalf("%v has no generation", v.ModelID)
	case was && known != answers:
		t.Fatalf("generation %s of %v stands for\n%s\nand\n%s", v.Generation, v.ModelID, known, answers)
	case was && (old == nil || old.Generation != v.Generation):
		t.Fatalf("generation %s of %v comes again", v.Generation, v.ModelID)
	}
	belongs[v.Generation] = answers
	checkDeployed(t, old, v)
}

// checkDeployed holds that a version says where it comes from as long as its generation
// stays, and that nobody says of themselves who they are.
func checkDeployed(t *rapid.T, old, v *serving.Version) {
	switch d := v.Deployed; {
	case old != nil && old.Generation == v.Generation:
		if !reflect.DeepEqual(d, old.Deployed) {
			t.Fatalf("%v was deployed by %+v, and of the same generation by %+v", v.ModelID, old.Deployed, d)
		}
	case d != nil && (d.By != "anna" && d.By != serving.ByFile || time.Since(d.At) > time.Minute || d.At.Location() != time.UTC):
		t.Fatalf("%v is deployed by %+v", v.ModelID, d)
	}
}

// answersOf is what the answers of a version may depend on. It spells out what Redefined
// leaves aside.
func answersOf(t *rapid.T, v *serving.Version) string {
	own := *v
	own.Generation, own.Origin, own.Deployed, own.Prepared, own.Description, own.Labels = "", "", nil, false, "", nil
	own.Replicas, own.Scale, own.Pin, own.Batch, own.Resources = 0, nil, nil, serving.BatchSpec{}, serving.Resources{}
	own.Container.BundleURL, own.Container.Connections, own.Container.Watch = "", 0, nil
	own.Stages = append(serving.Pipeline(nil), v.Stages...)
	for i := range own.Stages {
		s := &own.Stages[i]
		s.Workers, s.CPUs, s.Batch, s.Idempotent = 0, nil, serving.StageBatch{}, false
	}
	return encode(t, own)
}

// TestRedefined has every kind of field once.
func TestRedefined(t *testing.T) {
	whole := version("m", "1")
	whole.Container = serving.Container{
		Command: []string{"serve", "a"}, Env: map[string]string{"TOKEN": "s3cret"}, Watch: []string{"a"},
		Artifacts: []serving.Artifact{{Source: "https://u:s3cret@models.example/a", Checksum: "sha256:" + zeros}},
	}
	whole.Stages = serving.Pipeline{{Name: "a", Code: "m:A", Workers: 1}}
	for _, test := range []struct {
		name   string
		change func(v *serving.Version)
		want   []string
	}{
		{"nothing", func(*serving.Version) {}, nil},
		{"how many and how fast", func(v *serving.Version) {
			v.Replicas, v.Scale, v.Pin, v.Labels, v.Description = 3, &serving.ScaleSpec{Max: 3}, &serving.Pin{}, []string{"x"}, "y"
			v.Deployed = &serving.Deployed{By: "anna", Commit: "c1"}
			v.Batch, v.Resources = serving.BatchSpec{Delay: serving.Duration(time.Millisecond)}, serving.Resources{CPU: 1}
			v.Container.Watch, v.Container.Connections = []string{"b"}, 2
			v.Stages = serving.Pipeline{{Name: "a", Code: "m:A", Workers: 2, CPUs: []int{1}, Batch: serving.StageBatch{Strategy: "aimd"}, Idempotent: true}}
		}, nil},
		{"its command", func(v *serving.Version) { v.Container.Command = []string{"serve", "b"} }, []string{`command was ["serve","a"] and is ["serve","b"]`}},
		{"a secret", func(v *serving.Version) { v.Container.Env = map[string]string{"TOKEN": "s3cret-2", "B": "s3cret"} },
			[]string{`env.B is "(hidden)", and was not there`, `env.TOKEN has another secret`}},
		{"no environment", func(v *serving.Version) { v.Container.Env = nil }, []string{`env was {"TOKEN":"(hidden)"}, and is not there`}},
		{"a signed address", func(v *serving.Version) {
			v.Container.Artifacts = []serving.Artifact{{Source: "https://u:other@models.example/a", Checksum: "sha256:" + zeros}}
		}, []string{`artifacts[0].source has another secret`}},
		{"the code of a stage", func(v *serving.Version) { v.Stages = serving.Pipeline{{Name: "a", Code: "m:B", Workers: 9}} }, []string{`stages[0].code was "m:A" and is "m:B"`}},
		{"its host", func(v *serving.Version) { v.HostedBy = "h" }, []string{`hosted_by is "h", and was not there`}},
		{"its input", func(v *serving.Version) { v.InputType, v.InputLength = serving.Floats, 3 },
			[]string{`input_length is 3, and was not there`, `input_type was "doubles" and is "floats"`}},
	} {
		v := whole
		test.change(&v)
		var got []string
		for _, f := range catalog.Redefined(&whole, &v) {
			got = append(got, f.String())
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// TestVersionsAreImmutable redefines one by the API and by apply.
func TestVersionsAreImmutable(t *testing.T) {
	first := version("m", "1")
	first.Container = serving.Container{Command: []string{"serve"}, Env: map[string]string{"FACTOR": "3"}}
	second := first
	second.Container.Env = map[string]string{"FACTOR": "30"}
	second.Labels = []string{"x"}
	cat := must(t, &serving.Catalog{}, put(first))
	for name, change := range map[string]catalog.Change{
		"API":   catalog.PutVersion{Version: second},
		"apply": catalog.Import{Versions: []serving.Version{second}, Keep: true},
	} {
		_, err := catalog.Apply(cat, change, 0)
		if !errors.Is(err, catalog.ErrExists) || !strings.Contains(err.Error(), "env.FACTOR has another secret") || !strings.Contains(err.Error(), "--replace") || strings.Contains(err.Error(), "30") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	was := cat.Version(first.ModelID).Generation
	for name, change := range map[string]catalog.Change{
		"API":   catalog.PutVersion{Version: second, Replace: true},
		"apply": catalog.Import{Versions: []serving.Version{second}, Keep: true, Replace: true},
	} {
		v := must(t, cat, change).Version(first.ModelID)
		if v.Container.Env["FACTOR"] != "30" || v.Generation == was || v.Generation == "" {
			t.Errorf("%s: got %+v, which was generation %s", name, v, was)
		}
	}
	labels := first
	labels.Labels = []string{"x"}
	for name, change := range map[string]catalog.Change{
		"API":   catalog.PutVersion{Version: labels, Replace: true},
		"apply": catalog.Import{Versions: []serving.Version{labels}, Keep: true},
	} {
		if v := must(t, cat, change).Version(first.ModelID); len(v.Labels) != 1 || v.Generation != was {
			t.Errorf("%s: other labels make generation %s of %s", name, v.Generation, was)
		}
	}
	if v := must(t, cat, catalog.Renew{Old: cat.Version(first.ModelID).Definition()}).Version(first.ModelID); v.Generation == was || len(v.Container.Env) != 1 {
		t.Errorf("renewed it is %+v", v)
	}
	if _, err := catalog.Apply(cat, catalog.Renew{Old: serving.Definition{ModelID: id("m", "2")}}, 0); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("what does not exist is renewed: %v", err)
	}
}

// TestEarlierReleasesGaveNoGeneration reads what one of them stored, and changes it.
func TestEarlierReleasesGaveNoGeneration(t *testing.T) {
	cat := storedBefore(t, 7, `{"model":"m","version":"1","input_type":"doubles","replicas":1,"batch":{},"container":{"command":["a"]},"origin":"api"}`)
	if again := must(t, cat, catalog.SetScale{ID: id("m", "1"), Replicas: 2}).Version(id("m", "1")); again.Generation != "" {
		t.Errorf("scaling makes generation %s", again.Generation)
	}
	other := version("m", "1")
	other.Container.Command = []string{"b"}
	if next := must(t, cat, catalog.PutVersion{Version: other, Replace: true}).Version(id("m", "1")); next.Generation == "" {
		t.Error("redefining makes no generation")
	}
}

// storedBefore is a catalog of one version, as a store has it.
func storedBefore(t *testing.T, revision uint64, text string) *serving.Catalog {
	t.Helper()
	cat, err := catalog.Decode(revision, func(yield func(catalog.Document) bool) {
		_ = yield(catalog.Document{Kind: catalog.Versions, Key: "m:1", JSON: []byte(text)}) &&
			yield(catalog.Document{Kind: catalog.Models, Key: "m", JSON: []byte(`{"name":"m","current":"1"}`)})
	})
	require.NoError(t, err)
	return cat
}
