package openapi

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Contract is the operations of a document, by their ids.
type Contract map[string]*Operation

// Operation is one of a contract.
type Operation struct {
	*openapi3.Operation
	Method, Path string
	Succeeded    bool // an answer was checked whose status was below 300
}

// Load reads a document and checks it, its examples included.
func Load(t testing.TB, text []byte) Contract {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := Contract{}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			if all[op.OperationID] != nil {
				t.Fatalf("two operations are called %q", op.OperationID)
			}
			all[op.OperationID] = &Operation{Operation: op, Method: method, Path: path}
		}
	}
	return all
}

// AllSucceeded says which operations no successful answer of was checked.
func (c Contract) AllSucceeded(t testing.TB) {
	t.Helper()
	for id, op := range c {
		if !op.Succeeded {
			t.Errorf("%s is not tried", id)
		}
	}
}
