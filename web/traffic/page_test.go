package traffic_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
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
	families, err := traffic.Page{URL: server.URL + "/metrics", Key: "secret", Client: server.Client()}.Scrape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]*obs.Family{}
	for _, f := range families {
		seen[f.GetName()] = f
	}
	if f := seen["topsail_gateway_answers_total"]; f == nil || f.GetMetric()[0].GetCounter().GetValue() != 3 {
		t.Errorf("%v", f)
	}
	if seen["go_goroutines"] != nil {
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
		_, err := traffic.Page{URL: server.URL, Client: server.Client()}.Scrape(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		server.Close()
	}
}
