package httpapi

import (
	"testing"

	"github.com/topsail-serving/topsail/internal/access"
)

// TestPagesOfOtherSites: what a browser sends for one is refused, by whatever name it calls us.
func TestPagesOfOtherSites(t *testing.T) {
	const input = `{"input":[1]}`
	own, open := access.Hosts{"gw.example"}, []string{"https://shop.example"}
	for _, test := range []struct {
		name, method, path string
		config             Config
		header             []string
		status             int
	}{
		{"a program", "POST", "/doubles/predict", Config{Hosts: own}, nil, 403}, // the test calls it topsail
		{"an own name", "POST", "/doubles/predict", Config{Hosts: access.Hosts{"topsail"}}, nil, 200},
		{"another name", "GET", "/metrics", Config{Hosts: own, Inspect: func(b []byte) []byte { return b }}, nil, 403},
		{"health by another name", "GET", "/health", Config{Hosts: own}, nil, 200},
		{"another name with keys", "POST", "/doubles/predict", Config{Hosts: own, RequireKeys: true}, nil, 401},
		{"a page teaches", "POST", "/doubles/update", Config{}, []string{"Origin: https://evil.example", "Content-Type: text/plain"}, 403},
		{"a page asks", "POST", "/doubles/predict", Config{}, []string{"Origin: https://evil.example"}, 403},
		{"a page without an origin", "POST", "/doubles/predict", Config{}, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"an own page", "POST", "/doubles/predict", Config{}, []string{"Origin: http://topsail"}, 200},
		{"an allowed page", "POST", "/doubles/predict", Config{AllowedOrigins: open}, []string{"Origin: https://shop.example", "Sec-Fetch-Site: cross-site"}, 200},
		{"a page beside the allowed one", "POST", "/doubles/predict", Config{AllowedOrigins: open}, []string{"Origin: https://evil.example"}, 403},
	} {
		body := ""
		if test.method == "POST" {
			body = input
		}
		s := start(t, test.config, newFake())
		if got := s.do(t, test.method, test.path, body, test.header...); got.status != test.status {
			t.Errorf("%s: %d %s, want %d", test.name, got.status, got.body, test.status)
		}
		if test.status >= 400 && len(s.core.queries())+len(s.core.feedback()) > 0 {
			t.Errorf("%s: it reached the core", test.name)
		}
	}
}

// TestPreflight: browsers ask first for pages of other sites, and hear which may.
func TestPreflight(t *testing.T) {
	s := start(t, Config{AllowedOrigins: []string{"https://shop.example"}}, newFake())
	for origin, allowed := range map[string]string{"https://shop.example": "https://shop.example", "https://evil.example": ""} {
		got := s.do(t, "OPTIONS", "/doubles/predict", "", "Origin: "+origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type")
		if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("%s: %d %v", origin, got.status, got.header)
		}
	}
	got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "Origin: https://shop.example")
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// TestPagesReadRefusals: an allowed page reads why it was refused, and no other does.
func TestPagesReadRefusals(t *testing.T) {
	s := start(t, Config{AllowedOrigins: []string{"https://shop.example"}, Hosts: access.Hosts{"gw.example"}}, newFake())
	for origin, allowed := range map[string]string{"https://shop.example": "https://shop.example", "https://evil.example": ""} {
		got := s.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "Origin: "+origin) // the test calls it topsail
		if got.status != 403 || got.header.Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("%s: %d %v", origin, got.status, got.header)
		}
		asked := s.do(t, "OPTIONS", "/doubles/predict", "", "Origin: "+origin, "Access-Control-Request-Method: POST")
		if asked.header.Get("Access-Control-Allow-Origin") != allowed || (asked.status == 204) != (allowed != "") {
			t.Errorf("%s asks first: %d %v", origin, asked.status, asked.header)
		}
	}
	if n := len(s.core.queries()); n > 0 {
		t.Errorf("%d queries reached the core", n)
	}
}
