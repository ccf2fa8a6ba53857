package describe

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Document is the document of a query port for one caller.
type Document struct {
	MaxBatch int  // inputs, or pieces of feedback, in one request
	Feedback bool // POST /APP/update is served
	Metrics  bool // GET /metrics is served
	Keys     Keys
	Apps     []*serving.App   // that the caller may ask
	Catalog  *serving.Catalog // whose models say how long the inputs of apps are
}

// Keys says which requests need a key.
type Keys int

const (
	NoKeys   Keys = iota // none is looked at
	SomeKeys             // requests to an app with RequireKey
	AllKeys              // requests to every app
)

//go:embed shared.json
var shared []byte

// parts is what shared.json has.
type parts struct {
	Info  json.RawMessage
	Paths struct{ Health, Metrics, Document json.RawMessage }

	Components struct{ SecuritySchemes, Parameters, Headers, Responses, Schemas json.RawMessage }
}

// Write writes the document, a piece for each app.
func (d *Document) Write(w io.Writer) error {
	common, err := readParts()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `{"openapi":"3.1.0","info":%s`, common.Info)
	if security := d.Keys.security(); security != "" {
		fmt.Fprintf(out, `,"security":%s`, security)
	}
	fmt.Fprint(out, `,"paths":{`)
	shapes := d.writeApps(out)
	fmt.Fprintf(out, `"/health":%s,`, common.Paths.Health)
	if d.Metrics {
		fmt.Fprintf(out, `"/metrics":%s,`, common.Paths.Metrics)
	}
	fmt.Fprintf(out, `"/openapi.json":%s},"components":{`, common.Paths.Document)
	d.writeComponents(out, common, shapes)
	fmt.Fprint(out, `}}`)
	return out.Flush() // which says what went wrong before
}

// writeApps writes the paths of the apps by their names, and returns what shapes their inputs have.
func (d *Document) writeApps(out *bufio.Writer) []shape {
	apps := slices.SortedFunc(slices.Values(d.Apps), func(a, b *serving.App) int { return strings.Compare(a.Name, b.Name) })
	shapes := map[shape]bool{}
	var piece []byte
	for _, app := range apps {
		o := operations{App: app, shape: shapeOf(app, d.Catalog), needsKey: d.Keys == SomeKeys && app.RequireKey}
		shapes[o.shape] = true
		piece = o.appendPredict(piece[:0])
		if d.Feedback {
			piece = o.appendUpdate(piece)
		}
		_, _ = out.Write(piece)
	}
	return slices.SortedFunc(maps.Keys(shapes), shape.compare)
}

func (d *Document) writeComponents(out *bufio.Writer, common *parts, shapes []shape) {
	c := &common.Components
	if d.Keys != NoKeys {
		fmt.Fprintf(out, `"securitySchemes":%s,`, c.SecuritySchemes)
	}
	fmt.Fprintf(out, `"parameters":%s,"headers":%s,"responses":%s,"schemas":%s`, c.Parameters, c.Headers, c.Responses, bytes.TrimSuffix(c.Schemas, []byte{'}'}))
	var piece []byte
	for _, s := range shapes {
		piece = s.appendQuery(piece[:0], d.MaxBatch)
		if d.Feedback {
			piece = s.appendFeedback(piece, d.MaxBatch)
		}
		_, _ = out.Write(piece)
	}
	fmt.Fprint(out, `}`)
}

// readParts reads what is the same for all documents, without white space.
func readParts() (*parts, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, shared); err != nil {
		return nil, fmt.Errorf("describe: shared.json: %w", err)
	}
	var p parts
	if err := json.Unmarshal(compact.Bytes(), &p); err != nil {
		return nil, fmt.Errorf("describe: shared.json: %w", err)
	}
	return &p, nil
}

const keyed = `{"bearer":[]},{"key":[]}`

// security is what requests show where an operation does not say otherwise; empty: nothing.
func (k Keys) security() string {
	switch k {
	case AllKeys:
		return `[` + keyed + `]`
	case SomeKeys:
		return `[{},` + keyed + `]`
	}
	return ""
}
