package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

func TestModels(t *testing.T) {
	w := having(t)
	expect(t, w.ask("GET", "/models/m", ""), 200,
		`{"name":"m","current":"2","serving":"","previous":"1","input_type":"doubles","versions":["1","2"],"apps":["a"]}`)
	expect(t, w.ask("GET", "/models", ""), 200, `{"items":[{"name":"free",`)
	expectCode(t, w.ask("GET", "/models/none", ""), 404, "not_found")
}

func TestSetCurrent(t *testing.T) {
	w := having(t)
	etag := w.ask("GET", "/models/m", "").Header().Get("ETag")
	expect(t, w.ask("PUT", "/models/m/current", `{"version":"1"}`, "If-Match", etag), 200, `"current":"1"`, `"previous":"2"`)
	expectCode(t, w.ask("PUT", "/models/m/current", `{"version":"2"}`, "If-Match", etag), 412, "changed")
	expectCode(t, w.ask("PUT", "/models/m/current", `{"version":"9"}`), 404, "not_found")
	expectCode(t, w.ask("PUT", "/models/none/current", `{"version":"9"}`), 404, "not_found")
	expectCode(t, w.ask("PUT", "/models/m/current", `{}`), 400, "invalid", `\"version\" is missing`)
	expectCode(t, w.ask("PUT", "/models/m/current", ``), 415, "unsupported_type")
}

// TestHistory tells what a model went through, from the audit log.
func TestHistory(t *testing.T) {
	w := having(t)
	at := func(id, kind, action, name, before, after string) serving.AuditEntry {
		e := serving.AuditEntry{ID: id, Kind: kind, Action: action, Name: name, Who: "ann", From: "10.0.0.7", Client: "curl/8"}
		if before != "" {
			e.Before = []byte(before)
		}
		if after != "" {
			e.After = []byte(after)
		}
		return e
	}
	w.log = []serving.AuditEntry{
		at("1", "model", "create", "m", "", `{"current":"1"}`),
		at("2", "version", "create", "m:1", "", `{}`),
		at("3", "version", "update", "m:1", `{}`, `{}`),
		at("4", "model", "update", "m", `{"current":"1"}`, `{"current":"2","previous":"1"}`),
		at("5", "model", "update", "m", `{"current":"2","previous":"1"}`, `{"current":"2","previous":"1","serving":"2"}`),
		at("6", "model", "update", "m", `{"current":"2","previous":"1"}`, `{"current":"3","previous":"2"}`),
		at("7", "model", "update", "other", `{"current":"1"}`, `{"current":"2"}`),
		at("8", "model", "update", "m", `{"current":"3","previous":"2"}`, `{"current":"1","previous":"3"}`),
		at("9", "version", "delete", "m:2", `{}`, ""),
	}
	page := read[rest.Page[ModelChange]](t, w.askBy("viewer", "GET", "/models/m/history", ""))
	var got []string
	for _, c := range page.Items {
		got = append(got, c.ID+" "+c.Action+" "+c.Version+" "+c.Before)
	}
	if want := []string{"9 removed 2 ", "8 rolled_back 1 3", "6 promoted 3 2", "4 promoted 2 1", "2 registered 1 ", "1 promoted 1 "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := page.Items[1]; c.Who != "ann" || c.From != "10.0.0.7" || c.Client != "curl/8" {
		t.Errorf("by %+v", c)
	}
	first := read[rest.Page[ModelChange]](t, w.ask("GET", "/models/m/history?limit=4", ""))
	second := read[rest.Page[ModelChange]](t, w.ask("GET", "/models/m/history?limit=4&cursor="+first.Next, ""))
	if len(first.Items) != 4 || len(second.Items) != 2 || second.Items[0].ID != "2" || second.Next != "" {
		t.Errorf("in pages: %+v, %+v", first, second)
	}
	expectCode(t, w.ask("GET", "/models/none/history", ""), 404, "not_found")
	expectCode(t, w.askBy("alice", "GET", "/models/n/history", ""), 404, "not_found")
}

// TestHistoryOfAnother has names that come again: a model or a version that was deleted is not what is later called so.
func TestHistoryOfAnother(t *testing.T) {
	promoted := func(before, after string) serving.AuditEntry {
		return serving.AuditEntry{Kind: "model", Action: "update", Name: "m", Before: []byte(before), After: []byte(after)}
	}
	version := func(action, name string) serving.AuditEntry {
		return serving.AuditEntry{Kind: "version", Action: action, Name: "m:" + name}
	}
	w := having(t)
	w.log = []serving.AuditEntry{
		{Kind: "model", Action: "create", Name: "m", After: []byte(`{"current":"1"}`)},
		promoted(`{"current":"1"}`, `{"current":"2","previous":"1"}`),
		version("delete", "1"),
		version("create", "1"),
		promoted(`{"current":"2"}`, `{"current":"1","previous":"2"}`),
		{Kind: "model", Action: "delete", Name: "m", Before: []byte(`{"current":"1","previous":"2"}`)},
		{Kind: "model", Action: "create", Name: "m", After: []byte(`{"current":"2"}`)},
	}
	for i := range w.log {
		w.log[i].ID = string(rune('1' + i))
	}
	var got []string
	for _, c := range read[rest.Page[ModelChange]](t, w.ask("GET", "/models/m/history", "")).Items {
		got = append(got, strings.TrimSpace(c.Action+" "+c.Version))
	}
	if want := []string{"promoted 2", "deleted", "promoted 1", "registered 1", "removed 1", "promoted 2", "promoted 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHistoryShrinks reads on after the entries from where it reads are gone.
func TestHistoryShrinks(t *testing.T) {
	w := having(t)
	for _, id := range []string{"1", "2", "3", "4"} {
		w.log = append(w.log, serving.AuditEntry{ID: id, Kind: "version", Action: "create", Name: "m:" + id})
	}
	first := read[rest.Page[ModelChange]](t, w.ask("GET", "/models/m/history?limit=2", ""))
	w.log = w.log[3:]
	second := read[rest.Page[ModelChange]](t, w.ask("GET", "/models/m/history?limit=2&cursor="+first.Next, ""))
	if len(first.Items) != 2 || len(second.Items) != 0 || second.Next != "" {
		t.Errorf("after %+v comes %+v", first, second)
	}
}

func TestRollBack(t *testing.T) {
	w := having(t)
	expect(t, w.askBy("operator", "POST", "/models/m/rollback", ""), 200, `"current":"1"`)
	expect(t, w.askBy("operator", "POST", "/models/m/rollback", ""), 200, `"current":"2"`)
	expect(t, w.ask("POST", "/models/m/rollback", `{"version":"1"}`), 200, `"current":"1"`)
	expect(t, w.ask("POST", "/models/m/rollback", `{}`), 200, `"current":"2"`)
	expectCode(t, w.ask("POST", "/models/m/rollback", `{"version":"9"}`), 404, "not_found")
	expectCode(t, w.ask("POST", "/models/n/rollback", ``), 409, "no_previous", "name the version")
	expectCode(t, w.ask("POST", "/models/none/rollback", ``), 404, "not_found")
}

func TestPreparedVersionsAreNotCurrent(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/models/m/versions", `{"version":"p","input_type":"d","image":"i","prepared":true}`), 201, `"prepared":true`, `"current":false`)
	expectCode(t, w.ask("PUT", "/models/m/current", `{"version":"p"}`), 409, "prepared", "add_model")
	expectCode(t, w.ask("POST", "/models/m/rollback", `{"version":"p"}`), 409, "prepared")
}

func TestDeleteModel(t *testing.T) {
	w := having(t)
	expectCode(t, w.ask("DELETE", "/models/m", ""), 409, "in_use", `app \"a\"`)
	w.must(t, catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "free", Version: "2"}, InputType: serving.Ints}})
	// Somebody registers another version in between: that one goes, too.
	w.before = []catalog.Change{catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "free", Version: "3"}, InputType: serving.Ints}}}
	expect(t, w.ask("DELETE", "/models/free", ""), 204)
	if w.cat.Models["free"] != nil {
		t.Errorf("%+v is left", w.cat.Models["free"])
	}
	expectCode(t, w.ask("DELETE", "/models/free", ""), 404, "not_found")
}
