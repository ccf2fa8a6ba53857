package records

import (
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// Request is a message that asks for a prediction. It points into the message that it
// was read from.
type Request struct {
	UUID    string   // pairs the result with the record
	Data    []byte   // the input: the bytes of a serving.Input, or in a JSON message the JSON of it; of tensors their JSON
	Named   bool     // of a JSON message: Data is an object of inputs by their names
	Apps    []string // who is asked, where the job lets records say so; several have a result each
	User    string
	Context string
	Key     string        // the model key; empty: the record's key
	Format  stream.Format // Protobuf or JSON
}

// maxName bounds the texts of a request, in bytes.
const maxName = 256

// ParseRequest reads a message of a known format. What it takes may still lack its id.
func ParseRequest(message []byte, format stream.Format) (Request, error) {
	r := Request{Format: format}
	var err error
	if format == stream.JSON {
		err = r.parseJSON(message)
	} else {
		err = r.parseProtobuf(message)
	}
	if err != nil {
		return Request{}, fmt.Errorf("the message is no %v message: %w", format, err)
	}
	return r, r.check()
}

func (r *Request) check() error {
	for _, one := range []struct{ name, text string }{
		{"uuid", r.UUID}, {"user", r.User}, {"context", r.Context}, {"key", r.Key},
	} {
		if len(one.text) > maxName {
			return fmt.Errorf("%s has %d bytes: use at most %d", one.name, len(one.text), maxName)
		}
	}
	for _, app := range r.Apps {
		if len(app) > maxName {
			return fmt.Errorf("app has %d bytes: use at most %d", len(app), maxName)
		}
	}
	if len(r.Apps) > serving.MaxRecordApps {
		return fmt.Errorf("app names %d, and at most %d are possible", len(r.Apps), serving.MaxRecordApps)
	}
	return nil
}

// Input is the input of the request, for an app that takes inputs of type t, which are not tensors. Its
// error says what to do about it.
func (r *Request) Input(t serving.InputType) (serving.Input, error) {
	return r.InputOf(&serving.App{InputType: t})
}

// InputOf is the input of the request, for an app.
func (r *Request) InputOf(app *serving.App) (serving.Input, error) {
	t := app.InputType
	switch {
	case t == serving.Tensors:
		return parseTensors(r.Data, app.Signature.InputTensors())
	case r.Named:
		data, err := parseNamed(r.Data, t)
		return serving.Input{Type: t, Data: data}, err
	case r.Format == stream.JSON:
		data, err := parseInput(r.Data, t)
		return serving.Input{Type: t, Data: data}, err
	}
	return serving.Input{Type: t, Data: r.Data}, checkData(r.Data, t)
}

var errNoNumbers = errors.New("input is empty: give at least one number")
