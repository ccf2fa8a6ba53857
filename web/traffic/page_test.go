package traffic_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/traffic"
)

func TestPage(t *testing.T) {
	p := newProcess()
	p.answer("sum", serving.OK, 3, time.Millisecond)
	page := p.reg.Handler()
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		page.ServeHTTP(w, r)
	}))
	defer server.Close()
	answers, sent := 0.0, false
	readers := obs.Readers{
		"topsail_gateway_answers_total": func(s *obs.Series) { answers += s.Value },
		"go_goroutines":                 func(*obs.Series) { sent = true },
	}
	require.NoError(t, (traffic.Page{URL: server.URL + "/metrics", Key: "secret", Client: server.Client()}).Read(t.Context(), readers))
	if answers != 3 {
		t.Errorf("%v answers", answers)
	}
	if sent {
		t.Error("more was sent than is read")
	}
	if asked.Header.Get("X-Api-Key") != "secret" || asked.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("asked with %v", asked.Header)
	}
}

func TestPageThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "the same keys?"},
		"text": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("up 1\n"))
		}, "is it the address for operators"},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", obs.FamiliesType)
			_, _ = w.Write([]byte("up 1\n"))
		}, "cannot be read"},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", obs.FamiliesType)
			for range 9 << 10 {
				if _, err := w.Write(append([]byte("\xff\x07\n\xfc\x07"), make([]byte, 1020)...)); err != nil {
					return
				}
			}
		}, "more than"},
	} {
		server := httptest.NewServer(c.serve)
		err := traffic.Page{URL: server.URL, Client: server.Client()}.Read(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		server.Close()
	}
}
