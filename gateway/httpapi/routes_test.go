package httpapi

import (
	"strings"
	"testing"
)

func TestRoutes(t *testing.T) {
	s := start(t, Config{}, newFake())
	const nothing = "this path does not exist: use POST /<app>/predict, POST /<app>/update, POST /v2/models/<app>/infer, GET /openapi.json, GET /metrics or GET /health"
	const unknown = "no app of this name is registered: register it at the admin port, or check its spelling"
	for _, test := range []struct {
		method, path string
		status       int
		allow, cause string
	}{
		{"POST", "/nobody/predict", 404, "", unknown},
		{"POST", "/Doubles/predict", 404, "", unknown},
		{"POST", "/doubles%2F/predict", 404, "", unknown},
		{"POST", "/dou%zzbles/predict", 404, "", unknown},
		{"POST", "/%2564oubles/predict", 404, "", unknown},
		{"POST", "/health/predict", 404, "", unknown},
		{"POST", "/", 404, "", nothing},
		{"POST", "/doubles", 404, "", nothing},
		{"POST", "/doubles/Predict", 404, "", nothing},
		{"POST", "/doubles/predict//", 404, "", nothing},
		{"POST", "//predict", 404, "", nothing},
		{"POST", "//doubles/predict", 404, "", nothing},
		{"POST", "/x/../doubles/predict", 404, "", nothing},
		{"POST", "/doubles/predict/more", 404, "", nothing},
		{"POST", "/doubles/updates", 404, "", nothing},
		{"POST", "/doubles/update//", 404, "", nothing},
		{"POST", "//update", 404, "", nothing},
		{"POST", "/nobody/update", 404, "", unknown},
		{"POST", "/nobody/update/", 404, "", unknown},
		{"GET", "/doubles/update", 405, "POST", "this path takes POST only"},
		{"PUT", "/nobody/update/", 405, "POST", "this path takes POST only"},
		{"POST", "/doubles%2Fpredict", 404, "", nothing},
		{"GET", "/healthy", 404, "", nothing},
		{"GET", "/HEALTH", 404, "", nothing},
		{"GET", "/<script>", 404, "", nothing},
		{"GET", "/doubles/predict", 405, "POST", "this path takes POST only"},
		{"PUT", "/nobody/predict", 405, "POST", "this path takes POST only"},
		{"OPTIONS", "/doubles/predict/", 405, "POST", "this path takes POST only"},
		{"PROPFIND", "/doubles/predict", 405, "POST", "this path takes POST only"},
		{"post", "/doubles/predict", 405, "POST", "this path takes POST only"},
		{"PROPFIND", "/nothing", 404, "", nothing},
		{"POST", "/health", 405, "GET, HEAD", "this path takes GET, HEAD only"},
		{"POST", "/openapi.json", 405, "GET, HEAD", "this path takes GET, HEAD only"},
		{"POST", "/openapi.json/predict", 404, "", unknown},
		{"GET", "/openapi.json/", 404, "", nothing},
	} {
		got := s.do(t, test.method, test.path, `{"input":[1]}`)
		_, cause := got.refusal(t)
		if got.status != test.status || cause != test.cause || got.header.Get("Allow") != test.allow {
			t.Errorf("%s %s: %d, Allow %q, %s", test.method, test.path, got.status, got.header.Get("Allow"), got.body)
		}
	}
	if n := len(s.core.queries()); n != 0 {
		t.Errorf("%d queries reached the core", n)
	}
	if n := len(s.core.feedback()); n != 0 {
		t.Errorf("%d pieces of feedback reached the core", n)
	}
	if log := s.log.String(); log != "" {
		t.Errorf("refusals were logged: %s", log)
	}
}

func TestHealth(t *testing.T) {
	s := start(t, Config{}, newFake())
	if got := s.do(t, "GET", "/health", ""); got.status != 200 || got.body != `{"status":"ok"}` {
		t.Errorf("GET: %d %s", got.status, got.body)
	}
	if got := s.do(t, "HEAD", "/health", ""); got.status != 200 || got.body != "" || got.header.Get("Content-Length") != "15" {
		t.Errorf("HEAD: %d %q %v", got.status, got.body, got.header)
	}
}

func TestHeadOfPredict(t *testing.T) {
	c := start(t, Config{}, newFake()).dial(t)
	defer c.Close()
	if got := c.do(t, "HEAD", "/doubles/predict", ""); got.status != 405 || got.header.Get("Allow") != "POST" || got.body != "" {
		t.Errorf("%d %v %q", got.status, got.header, got.body)
	}
	if got := c.do(t, "POST", "/doubles/predict", `{"input":[1]}`); got.status != 200 {
		t.Errorf("after HEAD: %d", got.status)
	}
}

// No answer names the software that made it.
func TestHeadersOfAnswers(t *testing.T) {
	s := start(t, Config{}, newFake())
	for _, path := range []string{"/doubles/predict", "/nothing"} {
		got := s.do(t, "POST", path, `{"input":[1]}`)
		for name := range got.header {
			if !strings.Contains("Content-Type Content-Length Date", name) {
				t.Errorf("%s: unexpected header %s: %s", path, name, got.header.Get(name))
			}
		}
	}
}
