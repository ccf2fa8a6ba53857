package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/web/problem"
)

const (
	root  = "/ui/"
	index = "index.html"
	// assets is where the build puts files whose names change with their content.
	assets = "assets/"
	packed = ".gz"
)

// policy allows the pages to load only what is served here, and no inline scripts. Styles are
// files too: what a chart sets on its elements it sets through the object model, which needs no
// permission.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Topsail</title>
<h1>The web UI was not built</h1>
<p>Run <code>make build</code>, which needs Node 20, and start Topsail again. The API is at <a href="/api/v1/openapi.yaml">/api/v1</a> all the same.</p>
</html>
`

// site is the files of a build, read once.
type site struct {
	files map[string]file // by path below root
}

type file struct {
	plain, gzip []byte // gzip: nil where the build has none
	kind, etag  string
}

// newSite reads the files of a build; without an index it is a site that says so.
func newSite(built fs.FS) http.Handler {
	s := &site{files: map[string]file{}}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, packed) || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		s.files[name], err = read(built, name)
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return s
}

func read(built fs.FS, name string) (f file, err error) {
	if f.plain, err = fs.ReadFile(built, name); err != nil {
		return file{}, err
	}
	if zipped, err := fs.ReadFile(built, name+packed); err == nil {
		f.gzip = zipped
	}
	sum := sha256.Sum256(f.plain)
	f.etag = hex.EncodeToString(sum[:12])
	f.kind = kindOf(name)
	return f, nil
}

// kindOf does not leave to the machine what decides whether a browser runs a file.
func kindOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		if kind := mime.TypeByExtension(ext); kind != "" {
			return kind
		}
		return "application/octet-stream"
	}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p := problem.New(http.StatusMethodNotAllowed, "method_not_allowed", "the pages are read-only: use GET or HEAD")
		p.Header = http.Header{"Allow": {"GET, HEAD"}}
		p.Write(w)
		return
	}
	if r.URL.Path+"/" == root {
		http.Redirect(w, r, root, http.StatusPermanentRedirect)
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, root)
	f, there := s.files[name]
	switch {
	case below && there && name != index:
		f.serve(w, r, strings.HasPrefix(name, assets))
	case !below || strings.HasPrefix(name, assets) || name != "" && !wantsPage(r):
		problem.New(http.StatusNotFound, "not_found", "the web UI has no such file; it begins at "+root).Write(w)
	default:
		s.serveIndex(w, r)
	}
}

// serveIndex answers every address of a page alike: the script in it knows them.
func (s *site) serveIndex(w http.ResponseWriter, r *http.Request) {
	page, there := s.files[index]
	if there {
		page.serve(w, r, false)
		return
	}
	w.Header().Set("Content-Type", kindOf(index))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusServiceUnavailable)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(notBuilt)) // a client that has left does not miss it
	}
}

func (f file) serve(w http.ResponseWriter, r *http.Request, forever bool) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	if forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, etag := f.plain, `"`+f.etag+`"`
	if f.gzip != nil {
		h.Add("Vary", "Accept-Encoding")
		if takesGzip(r.Header.Values("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			body, etag = f.gzip, `"`+f.etag+`-gz"` // other bytes need another tag
		}
	}
	h.Set("ETag", etag)
	if known(r.Header.Values("If-None-Match"), etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has left does not miss it
	}
}

func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
}

// wantsPage says whether a person follows a link, rather than a page asking for a file.
func wantsPage(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		if strings.Contains(accept, "text/html") {
			return true
		}
	}
	return false
}

// takesGzip says whether a list of encodings, RFC 9110 section 12.5.3, has gzip.
func takesGzip(accepted []string) bool {
	for encoding := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, quality, _ := strings.Cut(encoding, ";")
		if name = strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && name != "*" {
			continue
		}
		_, value, weighted := strings.Cut(quality, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return !weighted || err == nil && q > 0
	}
	return false
}

// known says whether a list of entity tags has one, for a weak comparison.
func known(tags []string, etag string) bool {
	for tag := range strings.SplitSeq(strings.Join(tags, ","), ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
