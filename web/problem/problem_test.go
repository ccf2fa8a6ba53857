package problem_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/topsail-serving/topsail/web/problem"
)

func TestWrite(t *testing.T) {
	p := problem.New(http.StatusConflict, "in_use", "it is <b>used</b>")
	p.Header = http.Header{"Retry-After": {"1"}}
	w := httptest.NewRecorder()
	p.Write(w)
	want := `{"type":"about:blank","title":"Conflict","status":409,"detail":"it is \u003cb\u003eused\u003c/b\u003e","code":"in_use"}` + "\n"
	if w.Code != 409 || w.Body.String() != want || w.Header().Get("Retry-After") != "1" ||
		w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %d %s %v", w.Code, w.Body, w.Header())
	}
	if found, ok := errors.AsType[*problem.Problem](fmt.Errorf("wrapped: %w", p)); !ok || found != p || p.Error() != p.Detail {
		t.Errorf("found %v", found)
	}
	w = httptest.NewRecorder()
	problem.Write(w, http.StatusNotFound, "Not found", "nothing")
	if want := `{"type":"about:blank","title":"Not found","status":404,"detail":"nothing"}` + "\n"; w.Body.String() != want {
		t.Errorf("got %s", w.Body)
	}
}
