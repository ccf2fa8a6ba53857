package predict

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// The default output is text: nested where it is JSON, else a JSON string.
func TestDefaultOutputs(t *testing.T) {
	for text, want := range map[string]string{
		"-1":             `-1`,
		"-1.0":           `-1.0`,
		`{"a": [1, 2]}`:  `{"a":[1,2]}`,
		`"quoted"`:       `"quoted"`,
		"null":           `null`,
		"none":           `"none"`,
		"":               `""`,
		"True":           `"True"`,
		"NaN":            `"NaN"`,
		"{":              `"{"`,
		"a \"b\"\n":      `"a \"b\"\n"`,
		"1 2":            `"1 2"`,
		"bad utf8: \xff": `"bad utf8: \ufffd"`,
	} {
		t.Run(text, func(t *testing.T) {
			bubble(t, func(t *rig) {
				t.serves(func(a *serving.App) { a.DefaultOutput = text }, m1)
				a, _ := t.predict(newQuery(1))
				if string(a.Output) != want || !a.Default {
					t.Errorf("got %s, want %s", a.Output, want)
				}
			})
		})
	}
}

func TestApps(t *testing.T) {
	bubble(t, func(t *rig) {
		if _, err := t.p.App("app"); !errors.Is(err, serving.ErrNoCatalog) {
			t.Errorf("an app before there is a catalog: %v", err)
		}
		if _, err := one(context.Background(), t.p, newQuery(1)); !errors.Is(err, serving.ErrNoCatalog) {
			t.Errorf("a query before there is a catalog: %v", err)
		}
		t.serves(nil, m1)
		if a, err := t.p.App("app"); err != nil || a.SLO.Std() != slo {
			t.Errorf("got %+v, %v", a, err)
		}
		bad := newApp("bad", "m")
		bad.Policy.Kind = "oracle"
		err := t.p.SetCatalog(newCatalog([]*serving.App{newApp("new", "m"), bad}, newModel(m1)))
		if err == nil || !strings.Contains(err.Error(), `app "bad"`) || !strings.Contains(err.Error(), `"oracle" is unknown`) {
			t.Errorf("a policy that is not known: %v", err)
		}
		_, old := t.p.App("app")
		_, new := t.p.App("new")
		if old != nil || !errors.Is(new, serving.ErrUnknownApp) {
			t.Error("a catalog that cannot be used was used in part")
		}
		t.set(newCatalog(apps("new"), newModel(m1)))
		if _, err := one(context.Background(), t.p, newQuery(1)); !errors.Is(err, serving.ErrUnknownApp) {
			t.Errorf("a query to an app that is gone: %v", err)
		}
	})
}

func TestTheMetricsOfARemovedAppAreForgotten(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("a", echoes(0), m1)
		t.set(newCatalog(apps("app", "other"), newModel(m1)))
		t.predict(newQuery(1))
		const count = `topsail_gateway_query_seconds_count{app=`
		if t.metric(count+`"app"}`) != 1 || t.metric(count+`"other"}`) != -1 {
			t.Error("an app has metrics from its first query on")
		}
		of := newQuery(1)
		of.App = "other"
		t.predict(of)
		t.set(newCatalog(apps("other"), newModel(m1)))
		page := t.page()
		if strings.Contains(page, `app="app"`) || !strings.Contains(page, `app="other"`) {
			t.Errorf("after removing app:\n%s", page)
		}
		t.set(newCatalog(apps("app", "other"), newModel(m1)))
		if t.predict(newQuery(1)); t.metric(count+`"app"}`) != 1 {
			t.Error("an app that comes again starts with old counts")
		}
	})
}

// TestCatalogSwapsUnderLoad is in real time: apps appear, disappear and change their
// type and model while they are asked. Nobody gets another app's answer.
func TestCatalogSwapsUnderLoad(t *testing.T) {
	r, stop := newRig(t, func() {})
	defer stop()
	n1 := id("n", "1")
	r.replica("a", func(q arrival) (rpc.Answer, time.Duration) {
		if q.version == n1 {
			return number(-q.x), 0
		}
		return number(q.x), 0
	}, m1, n1)
	r.ready(m1, 1)
	r.ready(n1, 1)

	// In every catalog, "plus" is answered by m and "minus" by n, if they exist.
	plus, minus, strings := newApp("plus", "m"), newApp("minus", "n"), newApp("plus", "s")
	strings.InputType = serving.Strings
	for _, a := range []*serving.App{plus, minus, strings} {
		a.SLO, a.DefaultOutput = serving.Duration(10*time.Second), `"default of `+a.Name+`"`
	}
	catalogs := []*serving.Catalog{
		newCatalog([]*serving.App{plus, minus}, newModel(m1), newModel(n1)),
		newCatalog([]*serving.App{minus}, newModel(n1)),
		newCatalog([]*serving.App{plus}, newModel(m1), newModel(n1)),
		newCatalog(nil),
		newCatalog([]*serving.App{strings, minus}, newModel(n1)),
		newCatalog([]*serving.App{plus, minus}), // without their models
	}
	r.set(catalogs[0])
	var all sync.WaitGroup
	var asking atomic.Bool
	var answered atomic.Int64
	asking.Store(true)
	for g := range 4 {
		all.Go(func() {
			for i := 0; asking.Load(); i++ {
				x := float64(1 + i%100)
				name, want := "plus", x
				if (g+i)%2 == 0 {
					name, want = "minus", -x
				}
				q := newQuery(x)
				q.App = name
				a, err := one(t.Context(), r.p, q)
				_, refused := errors.AsType[*serving.QueryError](err)
				switch {
				case errors.Is(err, serving.ErrUnknownApp) || refused:
				case err != nil:
					t.Errorf("app %s: %v", name, err)
				case a.Default:
					if string(a.Output) != `"default of `+name+`"` {
						t.Errorf("app %s got %s", name, a.Output)
					}
				case !bytes.Equal(a.Output, []byte(jsonOf(want))):
					t.Errorf("app %s asked for %v and got %s", name, want, a.Output)
				default:
					answered.Add(1)
				}
			}
		})
	}
	for rounds := 0; rounds < 200 || answered.Load() == 0 && rounds < 20_000; rounds++ {
		for _, cat := range catalogs {
			r.set(cat)
		}
	}
	asking.Store(false)
	all.Wait()
	if answered.Load() == 0 {
		t.Error("no query was answered")
	}
}
