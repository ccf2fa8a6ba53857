package api

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

// announce puts two streams into the catalog: one of app a, and one of models.
func (w *world) announce(t *testing.T) {
	t.Helper()
	for _, s := range []serving.Stream{
		{Name: "wine", Kind: serving.DataStream, App: "a", Input: []string{"in"}, Output: "out", DeadLetter: "dead"},
		{Name: "wine.models", Kind: serving.ModelStream, Input: []string{"models"}, Output: "done", DeadLetter: "dead"},
	} {
		if _, err := w.Apply(t.Context(), catalog.PutStream{Stream: s}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStreams(t *testing.T) {
	w := having(t)
	w.announce(t)
	list := read[rest.Page[Stream]](t, w.ask("GET", "/streams", "")).Items
	if len(list) != 2 || list[1].Name != "wine.models" || list[1].Kind != "model" || list[1].Suspension != nil {
		t.Errorf("the list is %+v", list)
	}
	if list[1].Now != nil {
		t.Errorf("that is not served, and is %+v", list[1].Now)
	}
	expect(t, w.ask("GET", "/streams/wine", ""), 200, `"now":{"processes":1,"lag_records":7,"conditions":["cannot commit results"]}`)
	expect(t, w.ask("PUT", "/streams/wine.models/suspension?dry_run=true", ""), 200, `"by":"admin"}}}],"effects":[]`)
	s := read[Stream](t, w.ask("PUT", "/streams/wine.models/suspension", `{"reason":"bad models"}`))
	if s.Suspension == nil || s.Suspension.Reason != "bad models" || s.Suspension.By != "admin" || !s.Suspension.Since.Equal(w.now) {
		t.Errorf("suspended it is %+v", s.Suspension)
	}
	if cat := w.Catalog(); cat.Streams["wine.models"].Suspension == nil || cat.Streams["wine"].Suspension != nil {
		t.Errorf("the catalog has %+v", cat.Streams)
	}
	expectCode(t, w.ask("DELETE", "/streams/wine.models", ""), 409, "in_use", "resume it first")
	expect(t, w.ask("DELETE", "/streams/wine.models/suspension?dry_run=true", ""), 200, `"reason":"bad models"}},"after":`)
	expect(t, w.ask("DELETE", "/streams/wine.models/suspension", ""), 200, "!", "suspension")
	expect(t, w.ask("DELETE", "/streams/wine.models?dry_run=true", ""), 200, `Stream \"wine.models\" is forgotten`)
	expect(t, w.ask("DELETE", "/streams/wine.models", ""), 204)
	expectCode(t, w.ask("GET", "/streams/wine.models", ""), 404, "not_found")
	expectCode(t, w.ask("PUT", "/streams/none/suspension", ""), 404, "not_found")
	expectCode(t, w.ask("PUT", "/streams/wine/suspension", `{"why":"x"}`), 400, "invalid")
	expectCode(t, w.ask("PUT", "/streams/wine/suspension", `{"reason":"`+strings.Repeat("x", 1025)+`"}`), 400, "invalid")
}

// TestMappedStreams have apps for what records name, until the map says otherwise.
func TestMappedStreams(t *testing.T) {
	w := having(t)
	w.announce(t)
	expect(t, w.ask("PATCH", "/streams/wine?dry_run=true", `{"apps":{"red":"a"}}`), 200, `"apps":{"red":"a"}}}],"effects":[]`)
	s := read[Stream](t, w.ask("PATCH", "/streams/wine", `{"apps":{"red":"a","white":"b"}}`))
	if len(s.Apps) != 2 || s.Apps["red"] != "a" || s.Apps["white"] != "b" {
		t.Errorf("the map is %v", s.Apps)
	}
	expect(t, w.ask("PATCH", "/streams/wine?dry_run=true", `{"apps":{"red":null}}`), 200, `"after":{"name":"wine","kind":"data","app":"a","input":["in"],"output":"out","dead_letter":"dead","apps":{"white":"b"}}`)
	if s = read[Stream](t, w.ask("PATCH", "/streams/wine", `{"apps":{"red":null,"none":null}}`)); len(s.Apps) != 1 || s.Apps["white"] != "b" {
		t.Errorf("the map is %v", s.Apps)
	}
	expect(t, w.ask("PATCH", "/streams/wine?dry_run=true", `{"apps":{"both":"a, b"}}`), 200, `"both":"a, b"`)
	expectCode(t, w.ask("PATCH", "/streams/wine", `{"apps":{"red":"nobody"}}`), 404, "not_found")
	expectCode(t, w.ask("PATCH", "/streams/wine", `{"apps":{"both":"a, nobody"}}`), 404, "not_found")
	expectCode(t, w.ask("PATCH", "/streams/wine", `{"apps":{"both":"a, a"}}`), 400, "invalid", "named twice")
	expectCode(t, w.ask("PATCH", "/streams/none", `{"apps":{"red":"a"}}`), 404, "not_found")
	expectCode(t, w.ask("PATCH", "/streams/wine.models", `{"apps":{"red":"a"}}`), 400, "invalid", "apps are for data streams")
	expectCode(t, w.ask("PATCH", "/streams/wine", `{"app":"b"}`), 400, "invalid")
	expectCode(t, w.ask("PATCH", "/streams/wine", `{"apps":{"":"a"}}`), 400, "invalid")
	expect(t, w.ask("PATCH", "/streams/wine", `{"apps":null}`), 200, "!", `"apps"`)
}

// TestStreamsOfOthers are hidden from keys for some apps.
func TestStreamsOfOthers(t *testing.T) {
	w := having(t)
	w.announce(t)
	key, secret := serving.NewKey()
	key.Name, key.Role, key.Apps, key.Created = "for b", serving.RoleOperator, []string{"b"}, w.now
	if _, err := w.Apply(t.Context(), catalog.AddKey{Key: *key}, 0); err != nil {
		t.Fatal(err)
	}
	w.keys["for b"] = secret
	for name, app := range map[string]string{"of-b": "b", "of-both": "b, a"} {
		s := serving.Stream{Name: name, Kind: serving.DataStream, App: app, Input: []string{"in"}, Output: "out", DeadLetter: "dead"}
		if _, err := w.Apply(t.Context(), catalog.PutStream{Stream: s}, 0); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, w.askBy("for b", "GET", "/streams", ""), 200, "of-b", "!", "wine", "of-both")
	expectCode(t, w.askBy("for b", "PUT", "/streams/wine/suspension", ""), 404, "not_found")
	expectCode(t, w.askBy("for b", "PUT", "/streams/wine.models/suspension", ""), 404, "not_found")
	expectCode(t, w.askBy("for b", "PATCH", "/streams/wine", `{"apps":{"red":"b"}}`), 403, "forbidden")
}
