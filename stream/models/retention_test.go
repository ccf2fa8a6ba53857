package models

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// random is a model of some bytes that a bundle cannot have smaller.
func random(name, version string) *Model {
	m := source(version)
	m.Name = name
	for i := range 400 {
		m.Data = fmt.Appendf(m.Data, "# %x\n", (uint64(i)+1)*0x9e3779b97f4a7c15^uint64(len(version))<<40^uint64(version[len(version)-1])<<32^uint64(name[0])<<20)
	}
	return m
}

// stored is how many bundles there are.
func (w *world) stored() int {
	w.Helper()
	_, n, err := w.bundles.Used(w.Context())
	require.NoError(w, err)
	return n
}

// TestOldVersionsGo, but for those that are used, that a rollback leads to, or that others made.
func TestOldVersionsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("tasting")
		w.run(func(c *Config) { c.KeepVersions = 2 })
		person := serving.Version{ModelID: serving.ModelID{Model: "wine", Version: "0"}, InputType: serving.Doubles, Container: serving.Container{Command: []string{"serve"}}}
		w.apply(catalog.PutVersion{Version: person})
		for n := 1; n <= 3; n++ {
			m := source(fmt.Sprint(n))
			m.Apps = []string{"tasting"}
			w.write(message(fmt.Sprint(n), m))
			w.settle()
		}
		// The third is current, the second the one before; the first serves none yet.
		if got := w.versions("wine"); !slices.Equal(got, []string{"0", "2", "3"}) || w.stored() != 2 {
			t.Errorf("there are %q, and %d bundles", got, w.stored())
		}
		w.apply(catalog.SetServing{{Model: "wine", Version: "2"}})
		w.apply(catalog.SetPin{ID: serving.ModelID{Model: "wine", Version: "3"}, Pin: &serving.Pin{Count: 1}})
		for n := 4; n <= 7; n++ {
			w.write(message(fmt.Sprint(n), source(fmt.Sprint(n))))
			w.settle()
		}
		if got := w.versions("wine"); !slices.Equal(got, []string{"0", "2", "3", "6", "7"}) || w.stored() != 4 {
			t.Errorf("there are %q, and %d bundles", got, w.stored())
		}
		// What was removed is new when it is sent again.
		w.write(message("again", source("1")))
		w.settle()
		if w.current("wine") != "1" || w.version("6") != nil {
			t.Errorf("version %s is current of %q", w.current("wine"), w.versions("wine"))
		}
	})
}

// TestOthersKeepTheirVersions: another stream's, and all where the stream keeps all.
func TestOthersKeepTheirVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(func(c *Config) { c.KeepVersions = KeepAll })
		for n := 1; n <= 3; n++ {
			w.write(message(fmt.Sprint(n), source(fmt.Sprint(n))))
		}
		w.settle()
		w.stop()
		w.run(func(c *Config) { c.KeepVersions, c.Name = 1, "other" })
		for n := 4; n <= 6; n++ {
			w.write(message(fmt.Sprint(n), source(fmt.Sprint(n))))
			w.settle()
		}
		if got := w.versions("wine"); !slices.Equal(got, []string{"1", "2", "3", "5", "6"}) {
			t.Errorf("there are %q", got)
		}
	})
}

// TestAFullStore has the oldest versions that nothing uses make room, of whatever model. Only where
// there are none the stream waits.
func TestAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.bundles.MaxTotal = 40 << 10
		w.run(nil)
		for n := range 30 {
			w.write(message(fmt.Sprint(n), random("wine", fmt.Sprint(n%2*15+n/2))))
			w.settle()
			if n == 0 {
				size, _, err := w.bundles.Used(t.Context())
				if err != nil || size > 20<<10 || size < 4<<10 {
					t.Fatalf("a bundle has %d bytes, %v", size, err)
				}
			}
		}
		for _, o := range w.outcomesOf() {
			if o.what != Deployed {
				t.Errorf("%q", o)
			}
		}
		if got := w.versions("wine"); len(got) >= 10 || len(got) < 2 || !slices.Contains(got, w.current("wine")) {
			t.Errorf("there are %q", got)
		}
		// Each of these is the only version of its model, and current.
		for n := range 20 {
			w.write(message(fmt.Sprint("x", n), random(fmt.Sprintf("%c-model", 'a'+n), "1")))
		}
		w.until("full store", func() bool { return strings.Contains(w.job.Status().Condition, "full") })
		if got := w.versions("wine"); len(got) != 2 { // current, and the one before
			t.Errorf("there are %q", got)
		}
		w.stop()
	})
}
