package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

const page = "<!doctype html><title>Topsail</title>"

// browserAccepts is what a browser that follows a link says.
const browserAccepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func built(t *testing.T) http.Handler {
	t.Helper()
	return newSite(fstest.MapFS{
		"index.html":                {Data: []byte(page)},
		"index.html.gz":             {Data: zipped(t, page)},
		"assets/index-abc123.js":    {Data: []byte("run()")},
		"assets/index-abc123.js.gz": {Data: zipped(t, "run()")},
		"assets/icon-def456.svg":    {Data: []byte("<svg/>")},
		".keep":                     {},
	})
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAddresses(t *testing.T) {
	site := built(t)
	for _, c := range []struct {
		path, accept string
		status       int
		kind, body   string
	}{
		{"/ui/", "", 200, "text/html; charset=utf-8", page},
		{"/ui/index.html", browserAccepts, 200, "text/html; charset=utf-8", page},
		{"/ui/apps/wine", browserAccepts, 200, "text/html; charset=utf-8", page},
		{"/ui/models/a.b/1.2.js", browserAccepts, 200, "text/html; charset=utf-8", page},
		{"/ui/apps/wine", "application/json", 404, "application/problem+json", ""},
		{"/ui/assets/index-abc123.js", "*/*", 200, "text/javascript; charset=utf-8", "run()"},
		{"/ui/assets/icon-def456.svg", "", 200, "image/svg+xml", "<svg/>"},
		{"/ui/assets/index-old.js", browserAccepts, 404, "application/problem+json", ""},
		{"/ui/assets/index-abc123.js.gz", "", 404, "application/problem+json", ""},
		{"/ui/.keep", "", 404, "application/problem+json", ""},
		{"/ui/../secret", "", 404, "application/problem+json", ""},
		{"/elsewhere", browserAccepts, 404, "application/problem+json", ""},
	} {
		w := ask(site, "GET", c.path, "Accept", c.accept)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.kind || c.body != "" && w.Body.String() != c.body {
			t.Errorf("GET %s for %q: %d %s %q, want %d %s %q", c.path, c.accept, w.Code, w.Header().Get("Content-Type"), w.Body, c.status, c.kind, c.body)
		}
	}
}

func TestBeginning(t *testing.T) {
	w := ask(built(t), "GET", "/ui")
	if w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "/ui/" {
		t.Errorf("GET /ui: %d to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestMethods(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if w := ask(built(t), method, "/ui/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := ask(built(t), "HEAD", "/ui/"); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d, %d bytes, length %q", w.Code, w.Body.Len(), w.Header().Get("Content-Length"))
	}
}

// TestProtection also holds the site without a build, and answers that refuse, to the policy.
func TestProtection(t *testing.T) {
	for name, site := range map[string]http.Handler{"built": built(t), "not built": newSite(fstest.MapFS{".keep": {}}), "embedded": Handler()} {
		for _, path := range []string{"/ui/", "/ui/apps/x", "/ui/assets/index-abc123.js", "/ui/assets/no.js", "/ui"} {
			h := ask(site, "GET", path, "Accept", browserAccepts).Header()
			csp := h.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'self'", "script-src 'self'", "style-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} {
				if !strings.Contains(csp, part) {
					t.Errorf("%s, %s: the policy lacks %s: %q", name, path, part, csp)
				}
			}
			if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
				t.Errorf("%s, %s: the policy is lax: %q", name, path, csp)
			}
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s, %s: %v", name, path, h)
			}
		}
	}
}

func TestCaching(t *testing.T) {
	site := built(t)
	if got := ask(site, "GET", "/ui/assets/index-abc123.js").Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("an asset: %q", got)
	}
	for _, path := range []string{"/ui/", "/ui/apps/x"} {
		w := ask(site, "GET", path, "Accept", browserAccepts)
		if got := w.Header().Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s: %q", path, got)
		}
		again := ask(site, "GET", path, "Accept", browserAccepts, "If-None-Match", `"x", W/`+w.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s again: %d with %d bytes", path, again.Code, again.Body.Len())
		}
	}
}

func TestCompression(t *testing.T) {
	site := built(t)
	for accepted, want := range map[string]bool{
		"gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8": true, "GZIP": true, "*": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.0, br": false, "gzipped": false,
	} {
		w := ask(site, "GET", "/ui/assets/index-abc123.js", "Accept-Encoding", accepted)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: compressed %v, want %v", accepted, got, want)
			continue
		}
		if w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: Vary %q", accepted, w.Header().Get("Vary"))
		}
		body := io.Reader(w.Body)
		if want {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != "run()" {
			t.Errorf("%q: %q, %v", accepted, text, err)
		}
	}
	plain := ask(site, "GET", "/ui/").Header().Get("ETag")
	if packed := ask(site, "GET", "/ui/", "Accept-Encoding", "gzip").Header().Get("ETag"); packed == plain {
		t.Error("two encodings have the same ETag")
	}
	if w := ask(site, "GET", "/ui/assets/icon-def456.svg", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("what was not compressed says that it is")
	}
}

func TestNotBuilt(t *testing.T) {
	w := ask(newSite(fstest.MapFS{".keep": {}}), "GET", "/ui/", "Accept", browserAccepts)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
