package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/auth"
)

func TestEventsBeginWithHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c := r.reads(t, "viewer", "/events")
		defer c.leave()
		got := c.events()
		if kinds(got) != "hello" {
			t.Fatalf("got %s", kinds(got))
		}
		if h := decoded[hello](t, got[0]); h.Me.Name != "viewer" || h.Revision != r.Catalog().Revision {
			t.Errorf("%+v", h)
		}
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
			if c.header.Get(name) != want {
				t.Errorf("%s: %q", name, c.header.Get(name))
			}
		}
		time.Sleep(16 * time.Second)
		if text := c.take(); !strings.Contains(text, "\n\n:\n\n") {
			t.Error("no comment came in 16 s")
		}
	})
}

func TestEventsOfTheCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c, bob := r.reads(t, "viewer", "/events"), r.reads(t, "bob", "/events")
		defer c.leave()
		defer bob.leave()
		c.take()
		bob.take()
		for _, tt := range []struct {
			change catalog.Change
			want   string
		}{
			{catalog.Link{App: "b", Model: "m"}, "[{app b} {model m} {model n}]"},
			{catalog.SetCurrent{ID: serving.ModelID{Model: "m", Version: "1"}}, "[{model m}]"},
			{catalog.Unlink{App: "b", Model: "m"}, "[{app b} {model m} {model n}]"},
			{catalog.DeleteApp{Name: "a"}, "[{app a} {model m}]"},
			{catalog.RevokeKey{ID: r.cat.Key([]byte(r.keys["operator"]), r.now).ID}, "[]"},
		} {
			r.change(t, tt.change)
			got := c.events("traffic")
			if kinds(got) != "catalog" {
				t.Fatalf("%+v: got %s", tt.change, kinds(got))
			}
			if e := decoded[notice](t, got[0]); fmt.Sprint(e.Changed) != tt.want || e.Changed == nil || e.Revision != r.Catalog().Revision {
				t.Errorf("%+v: %s", tt.change, got[0].data)
			}
			got = bob.events("traffic")
			if want := fmt.Sprintf(`{"revision":%d}`, r.Catalog().Revision); kinds(got) != "catalog" || got[0].data != want {
				t.Errorf("%+v: a key for app b is told %v", tt.change, got)
			}
		}
	})
}

// TestNoticesThatNameMuch name nothing.
func TestNoticesThatNameMuch(t *testing.T) {
	after := &serving.Catalog{Revision: 2, Apps: map[string]*serving.App{}}
	for i := range maxNamed + 1 {
		name := fmt.Sprint("a", i)
		after.Apps[name] = &serving.App{Name: name}
	}
	one := &subscriber{queue: make(chan []byte, 1)}
	s := &broadcast{subscribers: map[*subscriber]struct{}{one: {}}, catalog: &serving.Catalog{}}
	s.takeCatalog(after)
	if got := string(<-one.queue); got != "event: catalog\ndata: {\"revision\":2}\n\n" {
		t.Errorf("%s", got)
	}
}

func TestEventsOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c, alice := r.reads(t, "viewer", "/events"), r.reads(t, "alice", "/events")
		defer c.leave()
		defer alice.leave()
		time.Sleep(600 * time.Millisecond)
		c.take()
		alice.take()
		r.set(func() {
			r.list[1].State = "ready"
			r.list = r.list[:2]
		})
		time.Sleep(500 * time.Millisecond)
		got := c.events("traffic")
		if kinds(got) != "replicas" || got[0].data != `{"changed":[{"kind":"replica","name":"m-2"},{"kind":"replica","name":"n-1"}]}` {
			t.Errorf("%v", got)
		}
		if got := alice.events("traffic"); kinds(got) != "replicas" || got[0].data != "{}" {
			t.Errorf("with a key for app a: %v", got)
		}
		r.set(func() { r.list[0].InFlight, r.measures = 7, 32 })
		time.Sleep(2 * time.Second)
		if got = c.events("traffic"); kinds(got) != "replicas" || got[0].data != "{}" {
			t.Errorf("figures: %v", got)
		}
		time.Sleep(5 * time.Second)
		if got := c.events("traffic"); len(got) != 0 {
			t.Errorf("when nothing changes: %v", got)
		}
	})
}

func TestEventsOfTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		decision := func(model string, at int64) serving.Decision {
			return serving.Decision{ModelID: serving.ModelID{Model: model, Version: "1"}, At: time.Unix(at, 0).UTC(), Outcome: "applied"}
		}
		r.decided = []serving.Decision{decision("m", 1)}
		r.log = []serving.AuditEntry{{ID: "1", Name: "old"}}
		admin, bob := r.reads(t, "admin", "/events"), r.reads(t, "bob", "/events")
		defer admin.leave()
		defer bob.leave()
		admin.take()
		bob.take()
		time.Sleep(1100 * time.Millisecond)
		if got := admin.events(); kinds(got) != "traffic" || got[0].data != "{}" {
			t.Errorf("%v", got)
		}
		bob.take()
		r.set(func() {
			r.decided = append([]serving.Decision{decision("m", 3), decision("n", 2)}, r.decided...)
			r.cluster.Processes = []Process{{Role: "gateway", Name: "g1", State: "failed"}}
			r.cluster.Servers = []check.Finding{{Name: "redis", State: check.OK, Checked: time.Unix(1, 0)}}
		})
		require.NoError(t, r.AddAudit(t.Context(), serving.AuditEntry{Name: "new", Kind: "app"}))
		time.Sleep(5 * time.Second)
		want := []message{
			{"decision", `{"changed":[{"kind":"version","name":"n:1"},{"kind":"version","name":"m:1"}]}`},
			{"audit", `{"changed":[{"kind":"app","name":"new"}]}`}, {"cluster", "{}"},
		}
		if got := admin.events("traffic"); !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
		if got := bob.events("traffic"); !slices.Equal(got, []message{{"decision", "{}"}, {"cluster", "{}"}}) {
			t.Errorf("with a key for app b: %v", got)
		}
		r.set(func() {
			r.cluster.Servers = []check.Finding{{Name: "redis", State: check.OK, Checked: time.Unix(2, 0)}}
		})
		time.Sleep(10 * time.Second)
		if got := admin.events("traffic"); len(got) != 0 {
			t.Errorf("when nothing happens: %v", got)
		}
	})
}

// TestAnswersOfTheRevision that a client has heard of wait for it.
func TestAnswersOfTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := having(t)
		revision := w.Catalog().Revision
		answered := make(chan *httptest.ResponseRecorder)
		ask := func(heard string) { answered <- w.ask("GET", "/apps", "", "Topsail-Revision", heard) }
		began := time.Now()
		go ask(fmt.Sprint(revision))
		if expect(t, <-answered, 200); time.Since(began) != 0 {
			t.Error("what is there is waited for")
		}
		go ask(fmt.Sprint(revision + 1))
		time.Sleep(time.Second)
		w.must(t, catalog.PutApp{App: serving.App{Name: "later", InputType: serving.Doubles, SLO: serving.Duration(time.Second)}})
		expect(t, <-answered, 200, `"later"`)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("it waits for %v", took)
		}
		go ask(fmt.Sprint(revision + 9))
		expect(t, <-answered, 200, `"later"`) // such as that of another catalog
		go ask("x")
		expectCode(t, <-answered, 400, "invalid", "Topsail-Revision")
	})
}

func TestEventsEndWithTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c, other := r.reads(t, "viewer", "/events"), r.reads(t, "operator", "/events")
		defer other.leave()
		time.Sleep(10 * time.Second)
		if c.gone() {
			t.Fatal("it ended")
		}
		for id, k := range r.Catalog().Keys {
			if k.Name == "viewer" {
				r.change(t, catalog.RevokeKey{ID: id})
			}
		}
		time.Sleep(1100 * time.Millisecond)
		if !c.gone() || other.gone() {
			t.Errorf("revoked: %v, another one: %v", c.gone(), other.gone())
		}
		time.Sleep(streamLasts)
		if !other.gone() {
			t.Error("a stream goes on for more than an hour")
		}
	})
}

func TestStreamsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		r.lines()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.served.Run(ctx) }()
		for _, path := range []string{"/events", "/replicas/m-1/logs?follow=true"} {
			c := r.reads(t, "viewer", path)
			defer c.leave()
			defer func() {
				if !c.gone() {
					t.Errorf("%s goes on", path)
				}
			}()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestSlowReaders are cut off, and hold up nobody.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		slow, quick := r.reads(t, "viewer", "/events"), r.reads(t, "viewer", "/events")
		defer quick.leave()
		unstick := make(chan struct{})
		slow.mu.Lock()
		slow.stuck = unstick
		slow.mu.Unlock()
		quick.take()
		time.Sleep(100 * time.Second)
		if got := len(quick.events()); got < 99 {
			t.Errorf("the quick one got %d messages in 100 s", got)
		}
		close(unstick)
		if !slow.gone() {
			t.Error("the slow one goes on though it has missed something")
		}
	})
}

func TestTooManySubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		var all []*reader
		for range maxSubscribers {
			all = append(all, r.reads(t, "viewer", "/events"))
		}
		expectCode(t, r.ask("GET", "/events", ""), http.StatusServiceUnavailable, "too_many", "256")
		all[0].leave()
		again := r.reads(t, "viewer", "/events")
		if kinds(again.events()) != "hello" {
			t.Error("a place that is free is not given away")
		}
		again.leave()
		for _, c := range all[1:] {
			c.leave()
		}
		synctest.Wait() // the bubble would not end, were anything left
		looks := r.looks
		time.Sleep(time.Minute)
		if r.looks != looks {
			t.Error("the cluster is looked at for nobody")
		}
	})
}

// TestEventsOverHTTP reads the beginning of a stream as a client does.
func TestEventsOverHTTP(t *testing.T) {
	r := runs(t)
	server := httptest.NewServer(r.handler)
	defer server.Close()
	request, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/api/v1/events", nil)
	request.Header.Set("X-Api-Key", r.keys["viewer"])
	resp, err := server.Client().Do(request)
	require.NoError(t, err)
	defer resp.Body.Close()
	var names []string
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && len(names) < 2 {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names = append(names, name)
		}
	}
	if got := strings.Join(names, " "); got != "hello traffic" {
		t.Errorf("got %s, %v", got, lines.Err())
	}
	head, err := http.NewRequestWithContext(t.Context(), "HEAD", server.URL+"/api/v1/events", nil)
	require.NoError(t, err)
	head.Header.Set("X-Api-Key", r.keys["viewer"])
	if resp, err := server.Client().Do(head); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %v", err)
	} else {
		resp.Body.Close()
	}
}

// TestNoticesAddUp makes changes at random, and wants that who reads again what events name
// has what somebody has who reads everything.
func TestNoticesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{memory: &memory{cat: &serving.Catalog{}}}
		have := map[string]string{}
		viewed := func() view { return viewOf(auth.Caller{Name: "drawn", Role: serving.RoleViewer}, w.cat) }
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			next, err := catalog.Apply(w.cat, drawChange(t), 0)
			if err != nil {
				continue
			}
			named := changed(w.cat, next)
			w.cat = next
			follow(have, viewed(), named)
		}
		want := map[string]string{}
		follow(want, viewed(), changed(&serving.Catalog{}, w.cat))
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Fatalf("followed:\n%v\nas it is:\n%v", have, want)
		}
	})
}
