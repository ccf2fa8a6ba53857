package api

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

func using(t testing.TB) *world {
	w := having(t)
	since := time.Date(2026, 8, 1, 9, 0, 0, 0, time.UTC)
	app, m1 := serving.UsageKey{App: "a"}, serving.UsageKey{ModelID: serving.ModelID{Model: "m", Version: "1"}}
	stage := func(of serving.UsageKey, name string, n uint64) serving.Usage {
		of.Stage = name
		return serving.Usage{Key: of, Since: since, Answers: n}
	}
	w.used = map[serving.UsageKey][]serving.Usage{
		app: {{Key: app, Since: since, Answers: 10, Cached: 4, Failed: 3, Micros: 25_000, Least: 300, Most: 12 * time.Millisecond,
			Last: &serving.UsageFailure{At: since.Add(time.Hour), Cause: "missed_slo", Message: "too late"}}, stage(app, "gone", 1), stage(app, "rank", 9)},
		m1: {{Key: m1, Since: since, Answers: 2, Missed: 7}, stage(m1, "embed", 2), stage(m1, "words", 3)},
	}
	return w
}

func TestUsageOfAnApp(t *testing.T) {
	w := using(t)
	expect(t, w.ask("GET", "/apps/a/usage", ""), 200,
		`"kind":"app","app":"a"`, `"policy":"single","latency_slo_micros":100000,"candidates":["m"],"since":"2026-08-01T09:00:00Z"`,
		`"usage":10,"cached":4,"failed":3,"missed":0,"total_micros":25000,"mean_micros":2500,"min_micros":1,"max_micros":12000`,
		`"last_failure":{"at":"2026-08-01T10:00:00Z","cause":"missed_slo","message":"too late"}`, "!", `"stages"`, `"model"`)
	expect(t, w.ask("GET", "/apps/b/usage", ""), 200, `"candidates":["n"]`, `"usage":0,"cached":0,"failed":0,"missed":0,"total_micros":0`, "!", "since", "_failure", "mean")
	w.must(t, catalog.PutApp{App: serving.App{Name: "a", Description: "ranks wine", InputType: serving.Doubles, SLO: serving.Duration(1e8), Stages: serving.Pipeline{{Name: "first", Model: "m"}, {Name: "rank", Model: "n"}}}})
	expect(t, w.ask("GET", "/apps/a/usage", ""), 200, `"description":"ranks wine","policy":"stages"`,
		`"stages":[{"stage":"first","model":"m","usage":0,`, `{"stage":"rank","model":"n","usage":9,`, "!", "gone", "candidates")
	expectCode(t, w.ask("GET", "/apps/none/usage", ""), 404, "not_found")
	w.away = errors.New("the store is unavailable")
	expectCode(t, w.ask("GET", "/apps/a/usage", ""), 503, "unavailable", "the store is unavailable")
}

func TestUsageOfAVersion(t *testing.T) {
	w := using(t)
	expect(t, w.ask("GET", "/models/m/versions/1/usage", ""), 200, `"kind":"version","model":"m","version":"1","since"`, `"usage":2,"cached":0,"failed":0,"missed":7`,
		`"stages":[{"stage":"embed","usage":2,`, `{"stage":"words","usage":3,`, "!", "candidates", "policy", "slo")
	expect(t, w.ask("GET", "/models/m/versions/2/usage", ""), 200, `"usage":0`, "!", `"stages"`)
	expectCode(t, w.ask("GET", "/models/m/versions/3/usage", ""), 404, "not_found")
	staged := serving.Version{ModelID: serving.ModelID{Model: "m", Version: "3"}, Description: "third", InputType: serving.Doubles, Stages: serving.Pipeline{{Name: "words"}, {Name: "rank"}}}
	staged.Container.Command = []string{"serve"}
	w.must(t, catalog.PutVersion{Version: staged, KeepCurrent: true})
	key := serving.UsageKey{ModelID: staged.ModelID}
	own := key
	own.Stage = "own"
	w.used[key] = []serving.Usage{{Key: key}, {Key: own, Answers: 4}}
	body := w.ask("GET", "/models/m/versions/3/usage", "").Body.String()
	order := []string{`"description":"third"`, `"stage":"words","usage":0`, `"stage":"rank","usage":0`, `"stage":"own","usage":4`}
	for at := 0; len(order) > 0; order = order[1:] {
		next := strings.Index(body[at:], order[0])
		if next < 0 {
			t.Fatalf("got %s, looking for %s", body, order[0])
		}
		at += next
	}
}

func TestListOfUsage(t *testing.T) {
	w := using(t)
	names := func(by, query string) (names []string, next string) {
		t.Helper()
		p := read[rest.Page[Usage]](t, w.askBy(by, "GET", "/usage"+query, ""))
		for _, u := range p.Items {
			names = append(names, u.Kind+" "+u.App+u.Model+":"+u.Version)
		}
		return names, p.Next
	}
	check := func(by, query, want string) {
		t.Helper()
		if got, next := names(by, query); strings.Join(got, ", ") != want || next != "" {
			t.Errorf("%s %s: got %s, want %s", by, query, strings.Join(got, ", "), want)
		}
	}
	check("viewer", "", "app a:, app b:, version free:1, version m:1, version m:2, version n:1")
	check("viewer", "?model=m", "version m:1, version m:2")
	check("viewer", "?model=none", "")
	check("bob", "", "app b:, version free:1, version n:1")
	check("bob", "?model=m", "")
	var all []string
	for next := ""; ; {
		some, after := names("viewer", "?limit=4&cursor="+next)
		all = append(all, some...)
		if next = after; next == "" {
			break
		}
	}
	if len(all) != 6 {
		t.Errorf("in pages: %v", all)
	}
	expectCode(t, w.askBy("bob", "GET", "/apps/a/usage", ""), 404, "not_found")
	expectCode(t, w.askBy("bob", "GET", "/models/m/versions/1/usage", ""), 404, "not_found")
	expectCode(t, w.askBy("query", "GET", "/usage", ""), 403, "forbidden")
}

func TestDescriptions(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/apps", `{"name":"c","description":"ranks \u00e9","input_type":"d","latency_slo_micros":1000}`), 201, `"description":"ranks é"`)
	expect(t, w.ask("PATCH", "/apps/c", `{"description":"ranks wine"}`), 200, `"description":"ranks wine"`)
	expect(t, w.ask("PATCH", "/apps/c", `{"description":null}`), 200, "!", "description")
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"3","description":"third","input_type":"d","command":["c"]}`), 201, `"description":"third"`)
	expect(t, w.askBy("viewer", "GET", "/models/m/versions/3", ""), 200, `"description":"third"`)
	expectCode(t, w.ask("PATCH", "/apps/a", `{"description":"`+strings.Repeat("x", serving.MaxDescription+1)+`"}`), 400, "invalid", "description has 1001 bytes; at most 1000 are allowed")
	expect(t, w.ask("PATCH", "/apps/a", `{"description":"`+strings.Repeat("x", serving.MaxDescription)+`"}`), 200)
}
