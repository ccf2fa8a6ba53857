package ui

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
)

// FuzzSite looks whether any request gets an answer without its protection, or a file that is not there.
func FuzzSite(f *testing.F) {
	f.Add("/ui/", browserAccepts, "gzip;q=0.5, br", `W/"a", *`)
	f.Add("/ui/assets/../index.html", "*/*", "*;q=0", "")
	f.Add("//ui", "", "gzip;q=x", `"`)
	site := newSite(fstest.MapFS{"index.html": {Data: []byte(page)}, "index.html.gz": {Data: []byte("packed")}, "assets/a.js": {Data: []byte("run()")}})
	f.Fuzz(func(t *testing.T, path, accept, encoding, tag string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		r.Header = http.Header{"Accept": {accept}, "Accept-Encoding": {encoding}, "If-None-Match": {tag}}
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		if w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%q: no policy", path)
		}
		switch body := w.Body.String(); w.Code {
		case http.StatusOK:
			if body != page && body != "packed" && body != "run()" {
				t.Errorf("%q: %q", path, body)
			}
		case http.StatusNotModified, http.StatusNotFound, http.StatusPermanentRedirect:
		default:
			t.Errorf("%q: %d", path, w.Code)
		}
	})
}
