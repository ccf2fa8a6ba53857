package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// CheckAnswer holds an answer against what the contract says of its status: there is such
// a one, its headers that are required are there, and its type and schema are the contract's.
func (op *Operation) CheckAnswer(t testing.TB, status int, header http.Header, body []byte) {
	t.Helper()
	op.Succeeded = op.Succeeded || status < 300
	response := op.Responses.Status(status)
	if response == nil && status >= 400 {
		response = op.Responses.Default()
	}
	if response == nil {
		t.Errorf("%s: the contract knows no %d", op.OperationID, status)
		return
	}
	for name, h := range response.Value.Headers {
		if h.Value.Required && header.Get(name) == "" {
			t.Errorf("%s: %d has no %s", op.OperationID, status, name)
		}
	}
	if err := misfit(response.Value, header.Get("Content-Type"), body); err != nil {
		t.Errorf("%s: %d %.1000s: %v", op.OperationID, status, body, err)
	}
}

// misfit is why a body does not fit a response, or nil.
func misfit(response *openapi3.Response, contentType string, body []byte) error {
	if len(response.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("the contract says that it has no body")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(contentType)
	media := response.Content[kind]
	if err != nil || media == nil {
		return fmt.Errorf("it is %q, which the contract does not say", contentType)
	}
	if !strings.HasSuffix(kind, "json") {
		return nil
	}
	return Fits(media.Schema.Value, body, openapi3.VisitAsResponse())
}

// CheckRequest holds the JSON body of a request against the contract: what was answered with
// success must fit, and what was refused for its form must not.
func (op *Operation) CheckRequest(t testing.TB, body string, fits bool) {
	t.Helper()
	if op.RequestBody == nil {
		if body != "" {
			t.Errorf("%s: the contract knows no body, and it was sent %.200s", op.OperationID, body)
		}
		return
	}
	media := op.RequestBody.Value.Content["application/json"]
	if media == nil {
		return
	}
	if body == "" {
		if fits == op.RequestBody.Value.Required {
			t.Errorf("%s: the contract says of the body required = %v, and without one fits = %v", op.OperationID, op.RequestBody.Value.Required, fits)
		}
		return
	}
	err := Fits(media.Schema.Value, []byte(body), openapi3.VisitAsRequest())
	if fits != (err == nil) {
		t.Errorf("%s: %.1000s fits the contract = %v, want %v: %v", op.OperationID, body, err == nil, fits, err)
	}
}

// Fits says why a text is not valid JSON of a schema, or nil.
func Fits(schema *openapi3.Schema, text []byte, as openapi3.SchemaValidationOption) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("there is more than one value")
	}
	if err := letAnyBeNull(schema); err != nil {
		return err
	}
	return schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.EnableJSONSchema2020(), as)
}

// letAnyBeNull lets null be what a schema without a type takes. The validator would refuse it.
func letAnyBeNull(schema *openapi3.Schema) error {
	return openapi3.NewSchemaRef("", schema).WalkSubtree(func(_ string, ref *openapi3.SchemaRef) error {
		if s := ref.Value; s.Type == nil && len(s.Enum)+len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) == 0 && s.Not == nil {
			s.Type = &openapi3.Types{"null", "boolean", "number", "string", "array", "object"}
		}
		return nil
	})
}
