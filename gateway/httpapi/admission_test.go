package httpapi

import (
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// keyed is a fake whose catalog has apps and keys; it returns the secrets by the keys' names.
func keyed(change func(cat *serving.Catalog), keys ...*serving.Key) (*fakeCore, map[string]string) {
	core, secrets := newFake(), map[string]string{}
	core.catalog = &serving.Catalog{Revision: 1, Apps: core.apps, Keys: map[string]*serving.Key{}}
	for _, k := range keys {
		made, secret := serving.NewKey()
		k.ID, k.Hash = made.ID, made.Hash
		core.catalog.Keys[k.ID], secrets[k.Name] = k, secret
	}
	if change != nil {
		change(core.catalog)
	}
	return core, secrets
}

// refusedOf reads how often requests to an app were refused for a reason.
func refusedOf(t *testing.T, r *obs.Registry, app, reason string) int {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if value, ok := strings.CutPrefix(line, fmt.Sprintf("topsail_gateway_refused_total{app=%q,reason=%q} ", app, reason)); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			require.NoError(t, err)
			return n
		}
	}
	return -1
}

func TestStoredKeys(t *testing.T) {
	registry := obs.NewRegistry()
	core, secrets := keyed(nil,
		&serving.Key{Name: "all", Role: serving.RoleQuery},
		&serving.Key{Name: "integers only", Role: serving.RoleQuery, Apps: []string{"integers", "gone"}},
		&serving.Key{Name: "viewer", Role: serving.RoleViewer},
		&serving.Key{Name: "operator", Role: serving.RoleOperator},
		&serving.Key{Name: "admin", Role: serving.RoleAdmin},
		&serving.Key{Name: "expired", Role: serving.RoleQuery, Expires: time.Now().Add(-time.Minute)},
	)
	r := start(t, Config{Keys: newKeys(t), Metrics: registry}, core)
	c := r.dial(t)
	defer c.Close()
	for _, tt := range []struct {
		name, app, key string
		status         int
		cause          string
	}{
		{"none", "doubles", "", 401, "Authorization: Bearer KEY"},
		{"none, unknown app", "nobody", "", 401, "Authorization: Bearer KEY"},
		{"of the file", "doubles", goodKey, 200, ""},
		{"stored", "doubles", secrets["all"], 200, ""},
		{"stored, unknown app", "nobody", secrets["all"], 404, "no app of this name"},
		{"for the app", "integers", secrets["integers only"], 200, ""},
		{"for the app, escaped", "i%6Etegers", secrets["integers only"], 200, ""},
		{"for another app", "doubles", secrets["integers only"], 403, `the key "integers only" is not for this app`},
		{"for another app, which there is not", "nobody", secrets["integers only"], 403, `the key "integers only" is not for this app`},
		{"for an app that there is not", "gone", secrets["integers only"], 404, "no app of this name"},
		{"a viewer's", "doubles", secrets["viewer"], 403, "has the role viewer"},
		{"an operator's", "doubles", secrets["operator"], 200, ""},
		{"an admin's", "doubles", secrets["admin"], 200, ""},
		{"expired", "doubles", secrets["expired"], 401, "expired or deleted"},
		{"another secret of a known id", "doubles", secrets["all"][:len(secrets["all"])-1] + "_", 401, "is unknown"},
		{"an id alone", "doubles", secrets["all"][:18], 401, "is unknown"},
		{"longer", "doubles", secrets["all"] + "x", 401, "is unknown"},
		{"8 kB", "doubles", secrets["all"] + strings.Repeat("x", 8<<10), 401, "is unknown"},
		{"odd bytes", "doubles", "topsail_\x80\xff\"aaaaaaa_x", 401, "is unknown"},
		{"an app that cannot be unescaped", "dou%zzbles", "", 401, "Authorization: Bearer KEY"},
		{"the same, with a key", "dou%zzbles", secrets["all"], 404, "no app of this name"},
	} {
		for _, do := range []string{"predict", "update"} {
			body, header := `{"input":[1],"label":1,"strict":false}`, []string{"Accept: application/json"}
			if tt.key != "" {
				header = append(header, "X-Api-Key: "+tt.key)
			}
			got := c.do(t, "POST", "/"+tt.app+"/"+do, body, header...)
			if got.status != tt.status || !strings.Contains(got.body, strings.ReplaceAll(tt.cause, `"`, `\"`)) {
				t.Errorf("%s, %s: %d %s, want %d with %q", tt.name, do, got.status, got.body, tt.status, tt.cause)
			}
			if (got.header.Get("WWW-Authenticate") != "") != (tt.status == 401) {
				t.Errorf("%s, %s: WWW-Authenticate %q", tt.name, do, got.header.Get("WWW-Authenticate"))
			}
			if tt.status != 200 {
				got.refusal(t)
			}
			if tt.key != "" && strings.Contains(got.body, tt.key) {
				t.Errorf("%s: the key is shown", tt.name)
			}
		}
	}
	for _, tt := range []struct {
		app, reason string
		want        int
	}{
		{"doubles", "no_key", 2}, {"", "no_key", 4}, {"doubles", "wrong_key", 12}, {"doubles", "forbidden", 4}, {"", "forbidden", 2},
		{"integers", "no_key", -1}, {"nobody", "no_key", -1}, {"gone", "forbidden", -1},
	} {
		if n := refusedOf(t, registry, tt.app, tt.reason); n != tt.want {
			t.Errorf("%q counts %d %s, want %d", tt.app, n, tt.reason, tt.want)
		}
	}
	if text := r.log.String(); text != "" {
		t.Errorf("log: %s", text)
	}
}

// A key belongs into a header: everything else gets into logs of proxies and histories.
func TestAKeyInTheAddressDoesNotCount(t *testing.T) {
	core, secrets := keyed(nil, &serving.Key{Name: "all", Role: serving.RoleQuery})
	r := start(t, Config{RequireKeys: true}, core)
	key := secrets["all"]
	for _, path := range []string{
		"/doubles/predict?api_key=" + key, "/doubles/predict?X-Api-Key=" + key, "/doubles/predict?access_token=" + key + "&key=" + key,
	} {
		if got := r.do(t, "POST", path, `{"input":[1],"api_key":"`+key+`"}`, "Cookie: X-Api-Key="+key, "X-Api-Keys: "+key, "Proxy-Authorization: Bearer "+key); got.status != 401 {
			t.Errorf("%.30s…: %d %s", path, got.status, got.body)
		}
	}
	if got := r.do(t, "POST", "/doubles/predict?api_key=wrong", `{"input":[1]}`, "Authorization: bearer "+key); got.status != 200 {
		t.Errorf("with the header: %d %s", got.status, got.body)
	}
}

// Where keys are not needed for all, an app can need one; and one that is shown counts.
func TestAnAppThatNeedsAKey(t *testing.T) {
	core, secrets := keyed(func(cat *serving.Catalog) { cat.Apps["integers"].RequireKey = true },
		&serving.Key{Name: "all", Role: serving.RoleQuery}, &serving.Key{Name: "floats", Role: serving.RoleQuery, Apps: []string{"floats"}})
	r := start(t, Config{}, core)
	for _, tt := range []struct {
		app, header string
		status      int
	}{
		{"doubles", "X-None: 1", 200},
		{"nobody", "X-None: 1", 404},
		{"integers", "X-None: 1", 401},
		{"integers", "Authorization: Basic eDp5", 401},
		{"doubles", "Authorization: Basic eDp5", 200}, // of a proxy
		{"integers", "X-Api-Key: " + secrets["all"], 200},
		{"doubles", "X-Api-Key: " + secrets["all"], 200},
		{"integers", "X-Api-Key: " + goodKey, 401},
		{"doubles", "X-Api-Key: " + goodKey, 401},
		{"floats", "X-Api-Key: " + secrets["floats"], 200},
		{"doubles", "X-Api-Key: " + secrets["floats"], 403},
	} {
		for _, do := range []string{"predict", "update"} {
			if got := r.do(t, "POST", "/"+tt.app+"/"+do, `{"input":[1],"label":1,"strict":false}`, "Accept: application/json", tt.header); got.status != tt.status {
				t.Errorf("%s/%s with %.20q: %d %s, want %d", tt.app, do, tt.header, got.status, got.body, tt.status)
			}
		}
	}
}

// A gateway that knows of no key at all looks at none.
func TestWithoutKeysNobodyLooks(t *testing.T) {
	core, _ := keyed(nil)
	r := start(t, Config{}, core)
	if got := r.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "Authorization: Bearer of-somebody-elses"); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Before there is a catalog nobody can tell a wrong key from one that is in it.
func TestKeysBeforeTheFirstCatalog(t *testing.T) {
	core := newFake()
	core.apps = nil
	r := start(t, Config{Keys: newKeys(t)}, core)
	_, stored := serving.NewKey()
	for header, want := range map[string]int{"X-None: 1": 401, "X-Api-Key: " + stored: 503, "X-Api-Key: " + goodKey: 503} {
		if got := r.do(t, "POST", "/doubles/predict", `{"input":[1]}`, header); got.status != want {
			t.Errorf("%.20s: %d %s, want %d", header, got.status, got.body, want)
		}
	}
}

// A deleted key is out with the next catalog, also on connections that are open; and one
// expires when it was said to.
func TestKeysEnd(t *testing.T) {
	core, secrets := keyed(nil, &serving.Key{Name: "a", Role: serving.RoleQuery}, &serving.Key{Name: "b", Role: serving.RoleQuery})
	bubble(t, Config{RequireKeys: true}, core, func(t *testing.T, s *piped) {
		for _, k := range core.catalog.Keys {
			if k.Name == "b" {
				k.Expires = time.Now().Add(time.Minute)
			}
		}
		c := s.dial()
		defer c.Close()
		expect := func(key string, want int) {
			t.Helper()
			if got := c.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "X-Api-Key: "+secrets[key]); got.status != want {
				t.Errorf("key %s: %d %s, want %d", key, got.status, got.body, want)
			}
		}
		expect("a", 200)
		expect("b", 200)
		time.Sleep(59 * time.Second)
		expect("b", 200)
		time.Sleep(time.Second)
		expect("b", 401)
		expect("a", 200)
		s.server.Serve(&serving.Catalog{Revision: 2, Apps: core.apps})
		expect("a", 401)
	})
}

// limits is a fake whose app doubles and key alice have limits.
func limits(app, key *serving.Limit) (*fakeCore, string) {
	core, secrets := keyed(func(cat *serving.Catalog) { cat.Apps["doubles"].Limit = app }, &serving.Key{Name: "alice", Role: serving.RoleQuery, Limit: key})
	return core, "X-Api-Key: " + secrets["alice"]
}

func TestLimits(t *testing.T) {
	registry := obs.NewRegistry()
	core, alice := limits(&serving.Limit{PerSecond: 2, Burst: 4}, &serving.Limit{PerSecond: 0.5, Burst: 3})
	bubble(t, Config{Metrics: registry}, core, func(t *testing.T, s *piped) {
		c := s.dial()
		defer c.Close()
		ask := func(want int, path, body string, header ...string) reply {
			t.Helper()
			got := c.do(t, "POST", path, body, append(header, "Accept: application/json")...)
			if got.status != want {
				t.Errorf("%s %s: %d %s, want %d", path, body, got.status, got.body, want)
			}
			return got
		}
		const one, two, five = `{"input":[1]}`, `{"input_batch":[[1],[2]]}`, `{"input_batch":[[1],[2],[3],[4],[5]]}`
		ask(200, "/doubles/predict", one, alice)                // the key has 2, the app 3
		ask(200, "/doubles/predict", two)                       // 2, 1
		ask(400, "/doubles/predict", `{"input":["x"]}`)         // counts for nothing
		ask(200, "/doubles/update", `{"query_id":1,"label":1}`) // 2, 0
		got := ask(429, "/doubles/predict", one, alice)         // the app's; 2, 0
		if a, ms := got.header.Get("Retry-After"), got.header.Get("Retry-After-Ms"); a != "1" || ms != "500" {
			t.Errorf("Retry-After %q, Retry-After-Ms %q", a, ms)
		}
		if class, cause := got.refusal(t); class != "Too many queries" || cause != `the app "doubles" has a limit of 2 queries a second, and 4 at once, at each gateway: send it again in 500 ms` {
			t.Errorf("%s", got.body)
		}
		ask(429, "/doubles/update", `{"feedback_batch":[{"query_id":1,"label":1}]}`)
		ask(200, "/integers/predict", two, alice) // 0, 0: the refused one cost the key nothing
		got = ask(429, "/integers/predict", one, alice)
		if _, cause := got.refusal(t); !strings.Contains(cause, `the key "alice" has a limit of 0.5 queries a second, and 3 at once`) || got.header.Get("Retry-After") != "2" {
			t.Errorf("%s, Retry-After %q", got.body, got.header.Get("Retry-After"))
		}
		ask(200, "/integers/predict", one) // has no limit itself
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		require.NoError(t, err)
		time.Sleep(time.Duration(seconds) * time.Second)
		ask(200, "/integers/predict", one, alice) // 0, 4
		ask(200, "/doubles/predict", five)        // more than the bucket holds: -1
		ask(429, "/doubles/predict", five)
		ask(429, "/doubles/predict", `{"input_batch":[]}`)
		time.Sleep(time.Second)
		ask(200, "/doubles/predict", `{"input_batch":[]}`)
		ask(429, "/doubles/predict", `{"input_batch":[]}`)

		s.server.Serve(core.catalog) // changes nothing
		ask(429, "/doubles/predict", one)
		higher := *core.catalog.Apps["doubles"]
		higher.Limit = &serving.Limit{PerSecond: 2, Burst: 5}
		apps := map[string]*serving.App{"doubles": &higher}
		s.server.Serve(&serving.Catalog{Apps: apps, Keys: core.catalog.Keys})
		ask(200, "/doubles/predict", one)
	})
	for _, tt := range []struct {
		app, reason string
		want        int
	}{{"doubles", "limit", 6}, {"integers", "limit", -1}, {"", "limit", 0}} { // ints has gone
		if n := refusedOf(t, registry, tt.app, tt.reason); n != tt.want {
			t.Errorf("%q counts %d %s, want %d", tt.app, n, tt.reason, tt.want)
		}
	}
}

// However many ask at once, over connections of their own, no more than the burst pass;
// and whoever then waits as long as it was told passes.
func TestLimitsWithManyAtOnce(t *testing.T) {
	const burst, clients = 50, 20
	core, alice := limits(nil, &serving.Limit{PerSecond: 0.01, Burst: burst})
	r := start(t, Config{RequireKeys: true}, core)
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c := r.dial(t)
			defer c.Close()
			for range 10 {
				switch got := c.do(t, "POST", "/doubles/predict", `{"input":[1]}`, alice); got.status {
				case 200:
					passed.Add(1)
				case 429:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != burst || refused.Load() != 10*clients-burst {
		t.Errorf("%d passed, %d were refused", passed.Load(), refused.Load())
	}
	if n := len(core.queries()); n != burst {
		t.Errorf("%d queries reached the core", n)
	}
}

// What catalogs and clients say cannot break out of a header or a body.
func TestRefusalsOfOddNames(t *testing.T) {
	const odd = "a\"b\r\nX-Evil: 1\r\n\r\n<script>"
	core, secrets := keyed(func(cat *serving.Catalog) {
		cat.Apps[odd] = &serving.App{Name: odd, InputType: serving.Doubles, Limit: &serving.Limit{PerSecond: 1e-3}}
	}, &serving.Key{Name: odd, Role: serving.RoleQuery, Apps: []string{odd}})
	r := start(t, Config{}, core)
	c := r.dial(t)
	defer c.Close()
	const path = "/a%22b%0D%0AX-Evil%3A%201%0D%0A%0D%0A%3Cscript%3E/predict"
	for _, want := range []int{200, 429} {
		got := c.do(t, "POST", path, `{"input":[1]}`, "X-Topsail-Timing: 1")
		if got.status != want || got.header.Get("X-Evil") != "" {
			t.Errorf("%d %v %s, want %d", got.status, got.header, got.body, want)
		}
		if want == 429 {
			got.refusal(t)
		}
	}
	got := c.do(t, "POST", "/integers/predict", `{"input":[1]}`, "X-Api-Key: "+secrets[odd])
	if got.status != 403 || got.header.Get("X-Evil") != "" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	got.refusal(t)
}

// stored is a catalog with so many keys, of which it returns one secret.
func stored(t testing.TB, core *fakeCore, n int) (*serving.Catalog, string) {
	t.Helper()
	cat := &serving.Catalog{Apps: core.apps, Keys: map[string]*serving.Key{}}
	secret := ""
	for range n {
		var k *serving.Key
		k, secret = serving.NewKey()
		k.Name, k.Role, k.Limit = "bench", serving.RoleQuery, &serving.Limit{PerSecond: serving.MaxLimit}
		cat.Keys[k.ID] = k
	}
	return cat, secret
}

// Limits of different apps have nothing in common, and those of one app little.
func BenchmarkAdmission(b *testing.B) {
	core := newFake()
	cat, _ := stored(b, core, 1)
	for _, app := range cat.Apps {
		app.Limit = &serving.Limit{PerSecond: serving.MaxLimit}
	}
	s := New(Config{}, core, nil, nil)
	s.Serve(cat)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := &appRequest{app: cat.Apps["doubles"], received: time.Now()}
			if err := s.charge(r, 1); err != nil {
				b.Error(err)
			}
		}
	})
}
