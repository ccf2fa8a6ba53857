//go:build edge

package edge

import (
	"strings"
	"testing"
	"time"
)

// pages is browsers that are sent here by pages of other sites, and names that were made to
// point here: nobody learns anything, and nothing is learned.
func pages() attack {
	const evil, shop = "Origin: https://evil.example", "Origin: http://shop.example"
	teach := `{"uid":"page","input":[1],"label":1}`
	return attack{
		name: "pages of other sites and foreign names",
		run: func(t *testing.T, s *server) {
			for range 20 {
				for _, test := range []struct {
					addr, request string
					status        int
				}{
					{s.gateway, post("/learns/update", teach, "Content-Type: text/plain", evil), 403},
					{s.gateway, post("/learns/update", teach, "Content-Type: text/plain", "Sec-Fetch-Site: cross-site"), 403},
					{s.gateway, post("/steady/predict", `{"input":[1]}`, evil), 403},
					{s.gateway, post("/steady/predict", `{"input":[1]}`, "Origin: null"), 403},
					{s.gateway, post("/steady/predict", `{"input":[1]}`, "Host: evil.example"), 403},
					{s.gateway, head("GET", "/metrics", "Host: evil.example"), 403},
					{s.gateway, head("GET", "/health", "Host: evil.example"), 200},
					{s.gateway, head("OPTIONS", "/learns/update", evil, "Access-Control-Request-Method: POST"), 405}, // and no word of who may
					{s.ops, head("GET", "/metrics", "Host: evil.example"), 403},
					{s.ops, head("GET", "/debug/pprof/heap", "Host: evil.example"), 403},
					{s.ops, head("GET", "/debug/pprof/cmdline", "Host: 127.0.0.1.evil.example"), 403},
					{s.ops, head("GET", "/health/ready", "Host: evil.example"), 200},
					{s.web, head("GET", "/api/v1/apps", "Host: evil.example"), 403},
					{s.web, post("/api/v1/apps", `{}`, "Content-Type: text/plain", evil), 403},
					{s.web, post("/admin/add_app", `{}`, "Content-Type: text/plain", evil), 403},
					{s.gateway, post("/learns/update", teach, "Content-Type: text/plain", shop), 403},
				} {
					status, header, body, err := s.one(test.addr, test.request)
					if allowed := header.Get("Access-Control-Allow-Origin"); status != test.status || err != nil || allowed != "" {
						line, _, _ := strings.Cut(test.request, "\r\n")
						t.Errorf("%s: %d %.200s %v, allowed %q, want %d", line, status, body, err, allowed, test.status)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			if _, _, body, err := s.one(s.web, head("GET", "/api/v1/apps/learns/learned?user=page")); err != nil || strings.Contains(body, `"feedback":1`) {
				t.Errorf("something was learned: %.300s %v", body, err)
			}
		},
	}
}

// allowedPage is a page that may ask, among others that may not.
func allowedPage() attack {
	return attack{
		name: "preflights of a page that may ask",
		run: func(t *testing.T, s *server) {
			for range 50 {
				for origin, allowed := range map[string]string{"https://shop.example": "https://shop.example", "https://evil.example": "", "null": ""} {
					_, header, _, err := s.one(s.gateway, head("OPTIONS", "/target/predict", "Origin: "+origin, "Access-Control-Request-Method: POST"))
					if got := header.Get("Access-Control-Allow-Origin"); got != allowed || err != nil {
						t.Errorf("%s: a preflight says %q %v, want %q", origin, got, err, allowed)
					}
					status, _, body, err := s.one(s.gateway, post("/target/predict", `{"input":[1]}`, "Origin: "+origin))
					if (status == 200) != (allowed != "") || err != nil {
						t.Errorf("%s: %d %.200s %v", origin, status, body, err)
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	}
}
