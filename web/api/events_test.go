package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func TestEventsBeginWithWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c := r.reads(t, "viewer", "/events")
		defer c.leave()
		got := c.events()
		if kinds(got) != "hello catalog replicas" {
			t.Fatalf("got %s", kinds(got))
		}
		if h := decoded[hello](t, got[0]); h.Me.Name != "viewer" || h.Revision != r.Catalog().Revision {
			t.Errorf("%+v", h)
		}
		if e := decoded[catalogEvent](t, got[1]); !e.Whole || len(e.Apps) != 2 || len(e.Models) != 3 || len(e.Versions) != 4 || e.Versions[0].Env["TOKEN"] != catalog.Hidden {
			t.Errorf("%s", got[1].data)
		}
		if e := decoded[replicasEvent](t, got[2]); !e.Whole || len(e.Changed) != 3 {
			t.Errorf("%s", got[2].data)
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

// TestEventsHideSecrets also from those who may read them: events are the same for all.
func TestEventsHideSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c := r.reads(t, "admin", "/events")
		defer c.leave()
		if text := c.take(); strings.Contains(text, "s3cret") {
			t.Errorf("%s", text)
		}
	})
}

func TestEventsOfTheCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t)
		c, bob := r.reads(t, "viewer", "/events"), r.reads(t, "bob", "/events")
		defer c.leave()
		defer bob.leave()
		if whole := decoded[catalogEvent](t, bob.events()[1]); len(whole.Apps) != 1 || len(whole.Models) != 2 {
			t.Errorf("a key for app b sees %+v", whole)
		}
		c.take()
		next := func(c *reader) catalogEvent {
			t.Helper()
			got := c.events("traffic")
			if kinds(got) != "catalog" {
				t.Fatalf("got %s", kinds(got))
			}
			e := decoded[catalogEvent](t, got[0])
			if e.Whole || e.Revision != r.Catalog().Revision {
				t.Errorf("%+v", e)
			}
			return e
		}

		r.change(t, catalog.Link{App: "b", Model: "m"})
		e := next(c)
		if len(e.Apps) != 1 || e.Apps[0].Name != "b" || len(e.Models) != 1 || e.Models[0].Name != "m" || len(e.Gone) != 0 {
			t.Errorf("linked: %+v", e)
		}
		if len(e.Versions) != 1 || e.Versions[0].ModelID.Version != "2" { // version 1 gets no queries
			t.Errorf("versions %+v", e.Versions)
		}
		if e := next(bob); len(e.Models) != 1 || len(e.Versions) != 2 || len(e.Models[0].Apps) != 1 {
			t.Errorf("somebody who did not see the model: %+v", e)
		}

		r.change(t, catalog.SetCurrent{ID: serving.ModelID{Model: "m", Version: "1"}})
		if e := next(c); len(e.Apps) != 0 || len(e.Models) != 1 || len(e.Versions) != 2 {
			t.Errorf("another version: %+v", e)
		}
		next(bob)

		r.change(t, catalog.Unlink{App: "b", Model: "m"})
		if e := next(c); len(e.Apps) != 1 || len(e.Models) != 1 || len(e.Gone) != 0 {
			t.Errorf("unlinked: %+v", e)
		}
		if e := next(bob); fmt.Sprint(e.Gone) != "[{model m} {version m:1} {version m:2}]" {
			t.Errorf("unlinked, for somebody who sees it no more: %+v", e)
		}

		r.change(t, catalog.DeleteApp{Name: "a"})
		if e := next(c); fmt.Sprint(e.Gone) != "[{app a}]" || len(e.Models) != 1 {
			t.Errorf("deleted: %+v", e)
		}
	})
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
		if kinds(got) != "replicas" || got[0].data != `{"changed":[{"id":"m-2","model":"m","version":"2","state":"ready"}],"gone":["n-1"]}` {
			t.Errorf("%v", got)
		}
		if got := alice.events("traffic"); kinds(got) != "replicas" || strings.Contains(got[0].data, "n-1") {
			t.Errorf("with a key for app a: %v", got)
		}
		r.set(func() { r.list[0].InFlight, r.measures = 7, 32 })
		time.Sleep(2 * time.Second)
		got = c.events("traffic")
		if kinds(got) != "replicas" || !strings.Contains(got[0].data, `"in_flight":7,"batch_limit":32`) {
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
		r.traffic = []AppTraffic{{App: "a", Attainment: new(0.5)}, {App: "b", Attainment: new(1.0)}, {App: "deleted"}}
		admin, bob := r.reads(t, "admin", "/events"), r.reads(t, "bob", "/events")
		defer admin.leave()
		defer bob.leave()
		admin.take()
		bob.take()
		time.Sleep(1100 * time.Millisecond)
		got := admin.events()
		if kinds(got) != "traffic" || strings.Contains(got[0].data, "deleted") || !strings.Contains(got[0].data, `"app":"a","slo_micros":100000`) {
			t.Errorf("%v", got)
		}
		if got := bob.events(); kinds(got) != "traffic" || strings.Contains(got[0].data, `"app":"a"`) {
			t.Errorf("with a key for app b: %v", got)
		}
		r.set(func() {
			r.decided = append([]serving.Decision{decision("m", 3), decision("n", 2)}, r.decided...)
			r.cluster.Processes = []Process{{Role: "gateway", Name: "g1", State: "failed"}}
			r.cluster.Servers = []Server{{Name: "redis", State: "ok", Checked: time.Unix(1, 0)}}
		})
		if err := r.AddAudit(t.Context(), serving.AuditEntry{Name: "new", Kind: "app"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := kinds(admin.events("traffic")); got != "decision decision audit cluster" {
			t.Errorf("got %s", got)
		}
		forBob := bob.events("traffic")
		if kinds(forBob) != "decision cluster" || !strings.Contains(forBob[0].data, `"model":"n"`) {
			t.Errorf("with a key for app b: %v", forBob)
		}
		if alarms := decoded[Cluster](t, forBob[1]).Alarms; len(alarms) != 1 || alarms[0].Name != "n:1" {
			t.Errorf("alarms %v", alarms)
		}
		r.set(func() { r.cluster.Servers = []Server{{Name: "redis", State: "ok", Checked: time.Unix(2, 0)}} })
		time.Sleep(10 * time.Second)
		if got := admin.events("traffic"); len(got) != 0 {
			t.Errorf("when nothing happens: %v", got)
		}
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
		if kinds(again.events()) != "hello catalog replicas" {
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
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var names []string
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && len(names) < 4 {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names = append(names, name)
		}
	}
	if got := strings.Join(names, " "); got != "hello catalog replicas traffic" {
		t.Errorf("got %s, %v", got, lines.Err())
	}
	head, err := http.NewRequestWithContext(t.Context(), "HEAD", server.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	head.Header.Set("X-Api-Key", r.keys["viewer"])
	if resp, err := server.Client().Do(head); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %v", err)
	} else {
		resp.Body.Close()
	}
}

// TestCatalogEventsAddUp makes changes at random, and wants that who has followed the
// events has what somebody has who comes then.
func TestCatalogEventsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{memory: &memory{cat: &serving.Catalog{}}}
		scope := rapid.SampledFrom([][]string{nil, {"a0"}, {"a1", "a2"}}).Draw(t, "scope")
		v := viewOf(callerFor(scope), w.cat)
		have := map[string]string{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			next, err := catalog.Apply(w.cat, drawChange(t), 0)
			if err != nil {
				continue
			}
			w.cat = next
			after := v.of(next)
			follow(have, after.since(v))
			v = after
		}
		want := map[string]string{}
		follow(want, v.whole())
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Fatalf("followed:\n%v\nas it is:\n%v", have, want)
		}
	})
}
