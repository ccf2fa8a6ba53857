package api

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
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
