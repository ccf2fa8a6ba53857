package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

// Whatever comes in as a document goes out, and comes in again as the same. What is
// refused is refused as the client's fault.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{fullApp, fullVersion, `{"name":"x","name":1}`, `{"name":null}`, `[]`, `{"policy":{"fallback":{}}}`, `{"env":{"a":"b"}}`, "{\"a\":\"\xff\"}", `{"":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip(t, text, new(serving.App), new(serving.App))
		roundTrip(t, text, new(Version), new(Version))
		roundTrip(t, text, new(Catalog), new(Catalog))
		roundTrip(t, text, new(NewKey), new(NewKey))
		if p, err := rest.ReadPatch(text, new(serving.App)); err == nil {
			var merged serving.App
			if err := p.Apply(serving.App{Name: "x", InputType: serving.Ints}, &merged); err != nil && problemOf(err).Status != http.StatusBadRequest {
				t.Fatal(err)
			}
		}
	})
}

func roundTrip(t *testing.T, text []byte, first, second any) {
	t.Helper()
	if err := rest.Decode(text, first); err != nil {
		p, ok := err.(*problem.Problem)
		if !ok || p.Status != http.StatusBadRequest || p.Detail == "" {
			t.Fatalf("got %v", err)
		}
		return
	}
	written, err := json.Marshal(first)
	if err != nil {
		if bytes.Contains(text, []byte("input_type")) || !bytes.Contains([]byte(err.Error()), []byte("input type")) {
			t.Fatal(err) // only a version without an input type cannot be written
		}
		return
	}
	if err := rest.Decode(written, second); err != nil {
		t.Fatalf("%s is read, and written as %s: %v", text, written, err)
	}
	again, err := json.Marshal(second)
	if err != nil || !reflect.DeepEqual(again, written) {
		t.Fatalf("%s comes back as %s, error %v", written, again, err)
	}
}

// What becomes of a body on its way is said as far as it is known.
func TestBodiesThatDoNotCome(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{{os.ErrDeadlineExceeded, 408, "too_slow"}, {io.ErrUnexpectedEOF, 400, "invalid"}} {
		w := having(t)
		for path, kind := range map[string]string{"/apps": rest.JSONType, "/artifacts": "application/zip"} {
			body := io.MultiReader(strings.NewReader(`{"name":`), iotest.ErrReader(tt.err))
			r := httptest.NewRequest("POST", "/api/v1"+path, body)
			r.Header.Set("Content-Type", kind)
			r.Header.Set("X-Api-Key", w.keys["admin"])
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			expectCode(t, answer, tt.status, tt.code, "send it again")
		}
		if len(w.log)+len(w.signed) > 0 {
			t.Errorf("logged %v", w.log)
		}
	}
}
