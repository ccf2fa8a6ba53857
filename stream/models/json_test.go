package models

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/stream"
)

// TestJSONRoundTrip writes an update as JSON, and reads it.
func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := drawUpdate(rt)
		want.Format = stream.JSON
		text := want.AppendJSON(nil)
		if got, err := ParseUpdate(text, stream.JSON); err != nil || !sameUpdate(got, want) {
			rt.Fatalf("%s\n%+v came back as\n%+v, %v", text, want, got, err)
		}
	})
}

func TestJSONAsPeopleWriteIt(t *testing.T) {
	u, err := ParseUpdate([]byte(`{"uuid": 7, "model": {"name": "m", "version": 12, "kind": "python", "text": "x = 1\n", "example": [1, 2]}}`), stream.JSON)
	if err != nil || u.UUID != "7" || u.Model.Version != "12" || string(u.Model.Data) != "x = 1\n" || u.Model.Example != "[1, 2]" {
		t.Errorf("%+v, %v", u, err)
	}
	u, err = ParseUpdate([]byte(`{"uuid": "8", "ensemble": {"name": "e", "input_type": "d", "models": ["m"], "policy": {"kind": "vote"}, "latency_slo_micros": 5, "default_output": -1}}`), stream.JSON)
	if err != nil || u.Ensemble.Policy != `{"kind": "vote"}` || u.Ensemble.DefaultOutput != "-1" {
		t.Errorf("%+v, %v", u.Ensemble, err)
	}
	for _, bad := range []string{
		`{"uuid": "1", "model": {"name": "m", "version": 1.5}}`, `{"uuid": "1", "model": {}} {}`, `{"uuid": "1", "model": {}}}`, `{"uuid": "1", "model": {"name": "m", "data": "AA==", "text": "x"}}`,
		`{"uuid": "1", "model": {}, "ensemble": {}}`, `{"uuid": "1", "model": {}, "remove": {}}`, `{"uuid": "1", "model": {"nmae": "m"}}`, "{\"uuid\": \"\xff\"}", `{"uuid": "1", "model": {"data": "not base64"}}`,
	} {
		if u, err := ParseUpdate([]byte(bad), stream.JSON); err == nil {
			t.Errorf("%s is %+v", bad, u)
		}
	}
}

// FuzzJSONUpdate holds that what is read can be written and read again, and is checked.
func FuzzJSONUpdate(f *testing.F) {
	f.Add([]byte(`{"uuid": 7, "sequence": 3, "model": {"name": "m", "version": 12, "kind": "python", "text": "x = 1", "options": {"a": "b"}, "example": [1, 2]}}`))
	f.Add([]byte(`{"uuid": "8", "ensemble": {"name": "e", "input_type": "d", "models": ["m"], "policy": {"kind": "vote"}, "latency_slo_micros": 5, "default_output": -1}}`))
	f.Add([]byte(`{"uuid": "9", "policy": {"app": "a", "parameters": {"within_micros": 5}}}`))
	f.Add([]byte(`{"uuid": "9", "stream": {"name": "s", "apps": {"red": "a", "white": null}}}`))
	f.Add([]byte(`{"uuid": "9", "remove": {"model": "m", "version": "1", "unlink": true}}`))
	f.Add([]byte(`{"uuid": "9", "model": ` + string(every) + `}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := ParseUpdate(b, stream.JSON)
		if err != nil {
			return
		}
		_ = u.content()
		switch {
		case u.Model != nil:
			_ = u.Model.check()
			holdSettings(t, u)
		case u.Ensemble != nil:
			_ = u.Ensemble.check()
		case u.Policy != nil:
			_ = u.Policy.check()
		case u.Mapping != nil:
			_ = u.Mapping.check()
		default:
			_ = u.Remove.check()
		}
		again, err := ParseUpdate(u.AppendJSON(nil), stream.JSON)
		if err != nil || again.UUID != u.UUID || again.about() != u.about() {
			t.Fatalf("%s came back as %+v, %v", b, again, err)
		}
	})
}
