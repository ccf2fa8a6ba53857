package openai

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/topsail-serving/topsail/serving"
)

// Kind is what a request asks for.
type Kind uint8

// The kinds of requests.
const (
	Chat Kind = iota
	Completion
	Embeddings
)

// Path is where requests go, behind the base of the API.
func (k Kind) Path() string {
	return [...]string{"/chat/completions", "/completions", "/embeddings"}[k]
}

// member is the member that a request must have.
func (k Kind) member() string { return [...]string{"messages", "prompt", "input"}[k] }

// object is what an answer is called, and chunk a part of it.
func (k Kind) object() string {
	return [...]string{"chat.completion", "text_completion", "list"}[k]
}

func (k Kind) chunk() string { return [...]string{"chat.completion.chunk", "text_completion", ""}[k] }

// prefix is how the ids of answers begin.
func (k Kind) prefix() string { return [...]string{"chatcmpl-", "cmpl-", ""}[k] }

// Request is what a request says, whichever kind it is of.
type Request struct {
	Kind   Kind
	Model  string // the app, perhaps with a version, as in "wine:2"
	Stream bool
	Usage  bool // of a stream: its last chunk says how many tokens there were
	Base64 bool // embeddings come as little-endian float32 in base64
	User   string

	members map[string]json.RawMessage // what the model gets
}

// Error is what is wrong with a request.
type Error struct {
	Param string // the member; empty: all of it
	Cause string
}

func (e *Error) Error() string { return e.Cause }

// Parse reads the body of a request. Its error is an *Error.
func Parse(kind Kind, body []byte) (*Request, error) {
	r := &Request{Kind: kind}
	if err := json.Unmarshal(body, &r.members); err != nil || r.members == nil {
		return nil, &Error{Cause: "the body must be a JSON object: " + why(err)}
	}
	var options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	var format string
	for _, m := range []struct {
		name string
		to   any
		keep bool // the model gets it, too
	}{
		{"model", &r.Model, false}, {"stream", &r.Stream, false}, {"stream_options", &options, false}, {"encoding_format", &format, false}, {"user", &r.User, true},
	} {
		raw := r.members[m.name]
		if err := json.Unmarshal(raw, m.to); raw != nil && err != nil {
			return nil, &Error{m.name, fmt.Sprintf("%s cannot be read: %v", m.name, err)}
		}
		if !m.keep {
			delete(r.members, m.name)
		}
	}
	r.Usage, r.Base64 = options.IncludeUsage, format == "base64"
	switch {
	case r.Model == "":
		return nil, &Error{"model", "model is missing: name an app"}
	case isNull(r.members[kind.member()]):
		return nil, &Error{kind.member(), kind.member() + " is missing"}
	case kind == Chat && !isArray(r.members["messages"]):
		return nil, &Error{"messages", "messages must be an array"}
	case len(r.User) > maxUser:
		return nil, &Error{"user", fmt.Sprintf("user has more than %d bytes", maxUser)}
	}
	return r, nil
}

// maxUser bounds the name of a user, in bytes.
const maxUser = 1024

func why(err error) string {
	if err == nil {
		return "it is null"
	}
	return err.Error()
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(bytes.TrimSpace(raw)) == "null" }

func isArray(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && text[0] == '['
}

// Inputs are the inputs of the queries that the request is for an app: the request itself for one
// that takes chat, and each text or list of numbers for others. There are at most so many.
func (r *Request) Inputs(app *serving.App, most int) ([]serving.Input, error) {
	switch {
	case app.InputType == serving.Chat:
		whole, err := r.whole()
		return []serving.Input{{Type: serving.Chat, Data: whole}}, err
	case r.Kind == Chat:
		return nil, &Error{"model", fmt.Sprintf("app %s takes %v, and only an app with input_type chat answers chat", app.Name, app.InputType)}
	}
	list, err := elements(r.members[r.Kind.member()], app.InputType)
	if err != nil {
		return nil, &Error{r.Kind.member(), err.Error()}
	}
	if len(list) == 0 || len(list) > most {
		return nil, &Error{r.Kind.member(), fmt.Sprintf("%s has %d elements, and may have 1 to %d", r.Kind.member(), len(list), most)}
	}
	inputs := make([]serving.Input, len(list))
	for i, one := range list {
		data, err := input(app.InputType, one)
		if err != nil {
			return nil, &Error{r.Kind.member(), fmt.Sprintf("%s cannot be an input of app %s, which takes %v: %v", r.Kind.member(), app.Name, app.InputType, err)}
		}
		inputs[i] = serving.Input{Type: app.InputType, Data: data}
	}
	return inputs, nil
}

// whole is the request as the model gets it: first what it is about, so that requests about the same begin
// alike, and then the other members, sorted, so that equal requests are equal.
func (r *Request) whole() ([]byte, error) {
	about := r.Kind.member()
	first, err := json.Marshal(map[string]json.RawMessage{about: r.members[about]})
	if err != nil || len(r.members) == 1 {
		return first, err
	}
	others := maps.Clone(r.members)
	delete(others, about)
	rest, err := json.Marshal(others)
	if err != nil {
		return nil, err
	}
	return append(append(first[:len(first)-1], ','), rest[1:]...), nil
}

// elements are the inputs in a member: one, or those of a list. A list of numbers is one.
func elements(raw json.RawMessage, t serving.InputType) (list []json.RawMessage, err error) {
	if !isArray(raw) {
		return []json.RawMessage{raw}, nil
	}
	err = json.Unmarshal(raw, &list)
	if t == serving.Ints && len(list) > 0 && !isArray(list[0]) {
		return []json.RawMessage{raw}, err
	}
	return list, err
}

// input is the data of one text or list of token ids.
func input(t serving.InputType, raw json.RawMessage) ([]byte, error) {
	switch t {
	case serving.Strings:
		var text string
		err := json.Unmarshal(raw, &text)
		return []byte(text), err
	case serving.Ints:
		var ids []int32
		if err := json.Unmarshal(raw, &ids); err != nil || len(ids) == 0 {
			return nil, errors.Join(err, errors.New("a list of token ids is needed"))
		}
		data := make([]byte, 0, 4*len(ids))
		for _, id := range ids {
			data = binary.LittleEndian.AppendUint32(data, uint32(id))
		}
		return data, nil
	}
	return nil, errors.New("it takes neither texts nor token ids")
}

// floats are the elements of an embedding.
func floats(v *serving.Value) ([]float32, error) {
	size := v.DType.Size()
	list := make([]float32, 0, len(v.Data)/max(size, 1))
	for at := 0; at+size <= len(v.Data) && size > 0; at += size {
		switch b := v.Data[at:]; v.DType {
		case serving.Float32:
			list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case serving.Float64:
			list = append(list, float32(math.Float64frombits(binary.LittleEndian.Uint64(b))))
		default:
			size = 0
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	text, err := serving.AppendJSON(nil, *v)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		return nil, errors.New("the output of the model is no list of numbers")
	}
	return list, nil
}
