package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

// TestInsight reads one document about an app: what it does, what its policy learned, and each model that it may ask.
func TestInsight(t *testing.T) {
	w := runs(t)
	w.traffic = []AppTraffic{{App: "a", Rate: 12}, {App: "b", Rate: 3}}
	w.list = append(w.list, Replica{ID: "m-3", Model: "m", Version: "1", State: "ready", Latency: 300}, Replica{ID: "m-4", Model: "m", Version: "1", State: "failed"})
	w.decided = []serving.Decision{{ModelID: serving.ModelID{Model: "n", Version: "1"}, To: 5}, {ModelID: serving.ModelID{Model: "m", Version: "1"}, To: 2}}
	w.used = map[serving.UsageKey][]serving.Usage{{ModelID: serving.ModelID{Model: "m", Version: "1"}}: {{Key: serving.UsageKey{ModelID: serving.ModelID{Model: "m", Version: "1"}}, Answers: 9, Failed: 2}}}
	w.must(t, catalog.SetCurrent{ID: serving.ModelID{Model: "m", Version: "1"}})

	in := read[Insight](t, w.ask("GET", "/apps/a/insight?uid=ann&context=night", ""))
	if in.App != "a" || in.Policy != "single" || in.Traffic.Rate != 12 || in.Learned != nil || !in.At.Equal(w.now) {
		t.Errorf("the app: %+v", in)
	}
	if len(in.Decisions) != 1 || in.Decisions[0].To != 2 {
		t.Errorf("decisions: %+v", in.Decisions)
	}
	if len(in.Models) != 2 { // and the one that only was learned of
		t.Fatalf("models: %+v", in.Models)
	}
	m := in.Models[0]
	if m.Version != "1" || !m.Current || *m.Chosen != 0.75 || *m.Agreed != 0.5 || m.Latency != 150 || m.Replicas["ready"] != 2 || m.Replicas["failed"] != 1 || m.Usage.Failed != 2 {
		t.Errorf("model: %+v", m)
	}

	w.must(t, catalog.PutApp{App: serving.App{Name: "a", InputType: serving.Doubles, SLO: serving.Duration(1e8), Models: []string{"m", "n"}, Policy: serving.PolicySpec{Kind: serving.PolicyExp3}}})
	expect(t, w.ask("GET", "/apps/a/insight?uid=ann&context=night", ""), 200,
		`"policy":"exp3"`, `"learned":{"uid":"ann","context":"night","steps":3,"loss":0,"regret":0}`,
		`"learned":{"share":0.25,"worth":0.5,"judged":8,"loss":0.125}`, `{"model":"gone","version":"3","current":false,"learned":{"share":0.75,"worth":0,"judged":0,"loss":0},"replicas":{}}`)

	expectCode(t, w.ask("GET", "/apps/none/insight", ""), 404, "not_found")
	answer := w.ask("GET", "/apps/b/insight", "")
	expectCode(t, answer, 503, "unavailable", "the store is unavailable")
	if answer.Header().Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	expectCode(t, w.ask("GET", "/apps/a/insight?uid="+strings.Repeat("x", 257), ""), 400, "invalid", "256 bytes")
	expectCode(t, w.ask("GET", "/apps/a/insight?uid=%ff", ""), 400, "invalid", "UTF-8")
}

func TestForget(t *testing.T) {
	w := having(t)
	expect(t, w.ask("DELETE", "/apps/a/learned?uid=ann", ""), 204)
	if !slices.Equal(w.forgot, []string{"a/ann/"}) {
		t.Errorf("forgot %v", w.forgot)
	}
	e := w.log[0]
	if e.Kind != "learned" || e.Action != "forget" || e.Name != "a" || e.Who != "admin" || !strings.Contains(string(e.Before), `"uid":"ann"`) || !e.At.Equal(w.now) {
		t.Errorf("the audit log has %+v", e)
	}
	expectCode(t, w.ask("DELETE", "/apps/none/learned", ""), 404, "not_found")
	w.away = errors.New("the disk is full")
	expectCode(t, w.ask("DELETE", "/apps/a/learned", ""), 503, "unavailable", "the change was made, but not recorded")
}

func TestAudit(t *testing.T) {
	w := having(t)
	for range 5 {
		expect(t, w.ask("DELETE", "/apps/a/learned", ""), 204)
	}
	var ids []string
	next := ""
	for range 3 {
		p := read[rest.Page[struct{ ID string }]](t, w.ask("GET", "/audit?limit=2&cursor="+next, ""))
		for _, e := range p.Items {
			ids = append(ids, strings.TrimLeft(e.ID, "0"))
		}
		next = p.Next
	}
	if next != "" || !slices.Equal(ids, []string{"5", "4", "3", "2", "1"}) {
		t.Errorf("got %v, and then %q", ids, next)
	}
	expect(t, w.ask("GET", "/audit?kind=app", ""), 200, `"items":[]`)
	expect(t, w.ask("GET", "/audit?kind=learned&name=a&who=admin", ""), 200, `"id":"00000005"`)
	expect(t, w.ask("GET", "/audit?who=file", ""), 200, `"items":[]`)
	expectCode(t, w.ask("GET", "/audit?kind=cat", ""), 400, "invalid", "kind")
	expectCode(t, w.ask("GET", "/audit?limit=0", ""), 400, "invalid", "limit")
}
