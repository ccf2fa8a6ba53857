package rest

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
	MaxBody = 1 << 20 // bytes of most requests
)

const (
	JSONType       = "application/json"
	MergePatchType = "application/merge-patch+json"
)

// ReadJSON reads the body into a pointer to a document; see Decode.
func ReadJSON(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	text, err := ReadBody(w, r, most, JSONType)
	if err != nil {
		return err
	}
	return Decode(text, into)
}

// ReadBody reads a body of one of some types.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64, types ...string) ([]byte, error) {
	if err := CheckType(r, types...); err != nil {
		return nil, err
	}
	return ReadAll(w, http.MaxBytesReader(w, r.Body, most))
}

// ReadAll reads a body to its end, into memory of the process's budget.
func ReadAll(w http.ResponseWriter, body io.Reader) ([]byte, error) {
	return inflight.ReadAll(w, Body{body})
}

// Body is a body on its way. Its errors are problems, but for a body that is too large.
type Body struct{ io.Reader }

// Read implements io.Reader.
func (b Body) Read(into []byte) (int, error) {
	n, err := b.Reader.Read(into)
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil, err == io.EOF, large:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, problem.New(http.StatusRequestTimeout, "too_slow", "the body arrived too slowly; send it again")
	}
	return n, Invalid("the body ended early; send it again")
}

// CheckType refuses a body of another type.
func CheckType(r *http.Request, types ...string) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && slices.Contains(types, kind) {
		return nil
	}
	list := strings.Join(types, " or ")
	p := problem.New(http.StatusUnsupportedMediaType, "unsupported_type", "the body must be sent with Content-Type: "+list)
	p.Header = http.Header{"Accept": {list}}
	return p
}

// Decode reads one JSON value into a document, strictly: see package schema.
func Decode(text []byte, into any) error {
	tree, err := parse(text)
	if err != nil {
		return err
	}
	return fill(&schema.Decoder{}, tree, into)
}

// CheckJSON says why a text is not JSON that can be decoded strictly, or nil.
func CheckJSON(text []byte) error {
	_, err := parse(text)
	return err
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
		return Invalid("the body %s", p.Text)
	}
	return Invalid("%s", p.Error())
}
