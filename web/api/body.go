package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/web/inflight"
	"github.com/topsail-serving/topsail/web/problem"
)

const (
	maxBody    = 1 << 20 // bytes of a request
	maxCatalog = 8 << 20 // bytes of a catalog: what is exported must come in again
)

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
)

// readJSON reads the body into a pointer to a document; see decode.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	text, err := readBody(w, r, most, jsonType)
	if err != nil {
		return err
	}
	return decode(text, into)
}

// readBody reads a body of one of some types.
func readBody(w http.ResponseWriter, r *http.Request, most int64, types ...string) ([]byte, error) {
	if err := checkType(r, types...); err != nil {
		return nil, err
	}
	return readAll(w, http.MaxBytesReader(w, r.Body, most))
}

func readAll(w http.ResponseWriter, body io.Reader) ([]byte, error) {
	return inflight.ReadAll(w, arriving{body})
}

// arriving is a body on its way. Its errors are problems, but for a body that is too
// large.
type arriving struct{ body io.Reader }

func (a arriving) Read(b []byte) (int, error) {
	n, err := a.body.Read(b)
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil, err == io.EOF, large:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, problem.New(http.StatusRequestTimeout, "too_slow", "the body came too slowly; send it again")
	}
	return n, invalid("the body ended too soon; send it again")
}

func checkType(r *http.Request, types ...string) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && slices.Contains(types, kind) {
		return nil
	}
	list := strings.Join(types, " or ")
	p := problem.New(http.StatusUnsupportedMediaType, "unsupported_type", "the body must be sent with Content-Type: "+list)
	p.Header = http.Header{"Accept": {list}}
	return p
}

// decode reads one JSON value into a document, strictly: see package schema.
func decode(text []byte, into any) error {
	tree, err := parse(text)
	if err != nil {
		return err
	}
	return fill(&schema.Decoder{}, tree, into)
}

func parse(text []byte) (tree any, err error) {
	tree, err = schema.ParseJSON(text)
	if p, ok := errors.AsType[schema.Problem](err); ok {
		return nil, wrong(p)
	}
	return tree, err
}

// fill puts a tree into a document.
func fill(d *schema.Decoder, tree, into any) error {
	if problems := d.Decode("", tree, into); len(problems) > 0 {
		return wrong(problems[0])
	}
	return nil
}

func wrong(p schema.Problem) error {
	if p.Path == "" {
		return invalid("the body %s", p.Text)
	}
	return invalid("%s", p.Error())
}
