package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/web/rest"
)

func TestLearned(t *testing.T) {
	w := having(t)
	expect(t, w.ask("GET", "/apps/a/learned?uid=ann&context=night", ""), 200, `"uid":"ann","context":"night","steps":3`, `"models":[]`)
	expectCode(t, w.ask("GET", "/apps/none/learned", ""), 404, "not_found")
	answer := w.ask("GET", "/apps/b/learned", "")
	expectCode(t, answer, 503, "unavailable", "the store is unavailable")
	if answer.Header().Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	expectCode(t, w.ask("GET", "/apps/a/learned?uid="+strings.Repeat("x", 257), ""), 400, "invalid", "256 bytes")
	expectCode(t, w.ask("GET", "/apps/a/learned?uid=%ff", ""), 400, "invalid", "UTF-8")
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
