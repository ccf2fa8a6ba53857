package catalog_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestPrepared registers versions that were prepared.
func TestPrepared(t *testing.T) {
	ahead := version("m", "1")
	ahead.Prepared, ahead.Replicas, ahead.Container = true, 3, serving.Container{Image: "m:1", Env: map[string]string{"K": "v"}}
	cat := must(t, &serving.Catalog{}, catalog.PutVersion{Version: ahead, KeepCurrent: true})
	registered := version("m", "1")
	registered.Labels, registered.Batch, registered.Container.Image = []string{"x"}, serving.BatchSpec{Delay: serving.Duration(time.Millisecond)}, "m:1"

	next := must(t, cat, catalog.PutVersion{Version: registered})
	want := ahead
	want.Prepared, want.Labels, want.Batch, want.Origin = false, registered.Labels, registered.Batch, serving.FromAPI
	want.Generation = cat.Version(ahead.ModelID).Generation
	if got := next.Version(ahead.ModelID); !reflect.DeepEqual(*got, want) || next.Models["m"].Current != "1" {
		t.Errorf("got %+v, current %q, want %+v", got, next.Models["m"].Current, want)
	}
	if m := must(t, cat, catalog.PutVersion{Version: registered, KeepCurrent: true}).Models["m"]; m.Current != "" || m.Versions["1"].Prepared {
		t.Errorf("got %+v", m)
	}
	if again := must(t, cat, catalog.PutVersion{Version: ahead}); again != cat {
		t.Error("to prepare it again is a change")
	}
	for name, change := range map[string]func(v *serving.Version){
		"another image":        func(v *serving.Version) { v.Container.Image = "m:2" },
		"another input":        func(v *serving.Version) { v.InputType = serving.Floats },
		"a bundle":             func(v *serving.Version) { v.Container = serving.Container{Bundle: "sha256:" + zeros} },
		"another command":      func(v *serving.Version) { v.Container.Command = []string{"serve"} },
		"prepared differently": func(v *serving.Version) { v.Prepared = true },
	} {
		other := registered
		change(&other)
		if got, err := catalog.Apply(cat, catalog.PutVersion{Version: other}, 0); !errors.Is(err, catalog.ErrExists) || got != nil {
			t.Errorf("%s: got %v and error %v", name, got, err)
		}
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// TestPrevious follows what a rollback goes back to.
func TestPrevious(t *testing.T) {
	cat := &serving.Catalog{}
	f := func(change catalog.Change, current, previous string) {
		t.Helper()
		cat = must(t, cat, change)
		if m := cat.Models["m"]; m.Current != current || m.Previous != previous {
			t.Errorf("%#v: got %q after %q, want %q after %q", change, m.Current, m.Previous, current, previous)
		}
	}
	f(put(version("m", "1")), "1", "")
	f(put(version("m", "2")), "2", "1")
	f(catalog.PutVersion{Version: version("m", "3"), KeepCurrent: true}, "2", "1")
	f(catalog.SetCurrent{ID: id("m", "1")}, "1", "2")
	f(catalog.SetCurrent{ID: id("m", "1")}, "1", "2")
	f(catalog.SetCurrent{ID: id("m", "2")}, "2", "1")
	f(catalog.DeleteVersion{ID: id("m", "2")}, "", "1")
	f(catalog.SetCurrent{ID: id("m", "1")}, "1", "")
	f(catalog.SetCurrent{ID: id("m", "3")}, "3", "1")
	f(catalog.DeleteVersion{ID: id("m", "1")}, "3", "")
}
