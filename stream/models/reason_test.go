package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestWhatIsWrong becomes a dead letter each, and the stream goes on.
func TestWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("strings") // takes doubles
		if _, err := w.store.Apply(t.Context(), catalog.PutVersion{Version: serving.Version{ModelID: serving.ModelID{Model: "wine", Version: "by-hand"}, InputType: serving.Doubles, Replicas: 1}}, 0); err != nil {
			t.Fatal(err)
		}
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		w.run(func(c *Config) { c.MaxRecord, c.MaxModel = 6000, 2000 })
		change := func(id string, change func(*Model)) serving.StreamMessage {
			m := source("1")
			m.Name = "model-" + id
			change(m)
			return message(id, m)
		}
		sum := func(data []byte) string { s := sha256.Sum256(data); return hex.EncodeToString(s[:]) }
		for _, one := range []struct {
			record serving.StreamMessage
			want   string
		}{
			{text("garbage"), "unreadable: the message is no protobuf update"},
			{text(`{"uuid": "x"}`), "unreadable: the message is no json update: it needs one of model, ensemble, policy, stream and remove"},
			{text(`{"uuid": "x", "modle": {}}`), `unreadable: the message is no json update: json: unknown field "modle"`},
			{text(`{"model": {"name": "m"}}`), "no_id"},
			{text(`{"uuid": "x", "model": {"name": "m", "version": 1, "kind": "python", "data": "%s"}}`, strings.Repeat("A", 6000)), "record_too_large"},
			{change("1", func(m *Model) { m.Kind = "caffe" }), `unknown_kind: there is no kind of model "caffe": use one of bundle, command`},
			{change("2", func(m *Model) { m.Version = "no version" }), "invalid: "},
			{change("3", func(m *Model) { m.Data = nil }), "invalid: give data"},
			{change("4", func(m *Model) { m.SHA256 = sum([]byte("other")) }), "wrong_checksum: the checksum of the model is "},
			{change("5", func(m *Model) { m.InputType = "" }), "invalid: a model of kind python needs an input_type"},
			{change("6", func(m *Model) { m.Python = "2.7" }), "invalid: no bundle can be made of the model: python is"},
			{change("7", func(m *Model) { m.Entry = "../../etc/passwd" }), "invalid: "},
			{change("8", func(m *Model) { m.Entry = "manifest.json" }), "invalid: "},
			{change("9", func(m *Model) { m.Archive = true }), "invalid: the model is no zip archive"},
			{change("10", func(m *Model) { m.Requirements = []string{"--index-url=http://elsewhere"} }), "invalid: "},
			{change("11", func(m *Model) { m.Example = `"text"` }), "invalid: no bundle can be made of the model: example"},
			{change("12", func(m *Model) { m.Data, m.Location, m.SHA256 = nil, "http://models.example.com/m", sum(nil) }), "location_refused"},
			{change("13", func(m *Model) { m.Apps = []string{"nobody"} }), `unknown: there is no app "nobody"`},
			{change("14", func(m *Model) { m.Apps, m.InputType = []string{"strings"}, "strings" }), "refused: the management API refuses the version is registered; that app strings asks it: "},
			{change("15", func(m *Model) { m.Kind, m.InputType = bundleKind, "" }), "refused: the management API refuses its bundle: "},
			{change("16", func(m *Model) { m.Data = bytes.Repeat([]byte("x"), 2001) }), "model_too_large"},
			{change("17", func(m *Model) { m.Name, m.Version = "wine", "by-hand" }), `conflict: version "by-hand" of model "wine" exists, and was not made by a stream`},
			{text(`{"uuid": "18", "ensemble": {"name": "e", "input_type": "doubles", "models": []}}`), "invalid: it needs latency_slo_micros"},
			{text(`{"uuid": "19", "ensemble": {"name": "e", "input_type": "doubles", "models": ["none"], "latency_slo_micros": 1000}}`), `unknown: there is no model "none"`},
			{text(`{"uuid": "22", "ensemble": {"name": "e", "input_type": "doubles", "models": [".."], "latency_slo_micros": 1000}}`), `invalid: `},
			{text(`{"uuid": "23", "ensemble": {"name": "e", "input_type": "doubles", "models": ["a/b"], "latency_slo_micros": 1000}}`), `invalid: `},
			{text(`{"uuid": "24", "ensemble": {"name": "e", "input_type": "doubles", "models": [%s"m"], "latency_slo_micros": 1}}`, strings.Repeat(`"m",`, 1000)), `invalid: it names 1001 models, and may name 1000`},
			{change("25", func(m *Model) { m.Apps = make([]string, 1001) }), "invalid: it names 1001 apps, and may name 1000"},
			{text(`{"uuid": "x", "%s": 1}`, strings.Repeat("m", 3900)), "unreadable: the message is no json update: json: unknown field"},
			{text(`{"uuid": "26", "model": {"name": "m", "version": 1, "kind": "python", "replica": 8}}`), `unreadable: the message is no json update: "replica" is unknown: did you mean "replicas"?`},
			{text(`{"uuid": "27", "model": {"name": "m", "version": 1, "kind": "python", "scale": {"min": "2"}}}`), `unreadable: the message is no json update: "scale.min" must be a whole number that fits, not a string`},
			{text(`{"uuid": "28", "model": {"name": "m", "version": 1, "kind": "python", "image": "wine:1"}}`), `unreadable: the message is no json update: "image" is not for messages`},
			{change("29", func(m *Model) { m.Settings = []byte(`{"labels": ["stream=other"]}`) }), `invalid: label "stream=other" is one that says which update a version was made by`},
			{change("30", func(m *Model) { m.Settings = []byte(`{"scale": {"min": 3, "max": 2}}`) }), `refused: the management API refuses the version: `},
			{change("38", func(m *Model) {
				m.Settings = []byte(`{"artifacts": [{"source": "https://models.example.com/m", "checksum": "` + sum(nil) + `"}]}`)
			}), "location_refused: the location https://models.example.com/m is none"},
			{text(`{"uuid": "31", "remove": {"version": "1"}}`), `invalid: model name ""`},
			{text(`{"uuid": "32", "remove": {"model": "wine", "app": "strings"}}`), `invalid: remove an app alone`},
			{text(`{"uuid": "33", "remove": {"model": "wine", "vresion": "1"}}`), `unreadable: the message is no json update: json: unknown field "vresion"`},
			{text(`{"uuid": "34", "policy": {"app": "strings", "parameters": {}}}`), `invalid: parameters must be a JSON object, such as `},
			{text(`{"uuid": "35", "policy": {"app": "strings", "parameters": {"within": 5}}}`), `invalid: "parameters.within" is unknown`},
			{text(`{"uuid": "36", "policy": {"app": "nobody", "parameters": {"within_micros": 5}}}`), `unknown: there is no app "nobody"`},
			{text(`{"uuid": "37", "policy": {"app": "strings", "parameters": {"kind": "guess"}}}`), `refused: the management API refuses the app: `},
			{text(`{"uuid": "39", "stream": {"name": "wine", "apps": {}}}`), `invalid: apps must have 1 to 1000 members`},
			{text(`{"uuid": "40", "stream": {"name": "wine", "apps": {"red": "strings"}}}`), `unknown: there is no stream "wine"`},
			{text(`{"uuid": "41", "stream": {"name": "wine", "apps": {"red": "a/b"}}}`), `invalid: app name "a/b"`},
			{text(`{"uuid": "20", "ensemble": {"name": "e", "input_type": "doubles", "models": [], "latency_slo_micros": 1000, "policy": "guess"}}`), "refused: "},
		} {
			before := len(w.read("dead"))
			w.write(one.record)
			w.settle()
			dead := w.outcomesOf()
			if len(w.read("dead")) != before+1 || !strings.HasPrefix(dead[len(dead)-1].what, one.want) {
				t.Errorf("%.60s: %q, want %q", one.record.Value, dead[len(dead)-1].what, one.want)
			}
		}
		if len(w.store.Catalog().Models) != 2 || len(w.store.Catalog().Apps) != 1 { // by hand, and the one that cannot be linked
			t.Errorf("there are %v and %v", w.store.Catalog().Models, w.store.Catalog().Apps)
		}
		w.write(message("good", source("2")))
		w.settle()
		if w.current("wine") != "2" || w.job.Ready() != nil {
			t.Errorf("version %q is current, %v", w.current("wine"), w.job.Ready())
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("of the models is left %v, %v", left, err)
		}
	})
}
