package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// Usage is how many tokens there were.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// choice is one answer of a completion, or a part of it.
type choice struct {
	Index        int     `json:"index"`
	Message      *object `json:"message,omitempty"` // of a chat
	Delta        *object `json:"delta,omitempty"`   // of a part of a chat
	Text         *string `json:"text,omitempty"`    // of a completion
	FinishReason *string `json:"finish_reason"`
	Logprobs     *object `json:"logprobs"`
}

// object is JSON that is passed on.
type object = json.RawMessage

// envelope is what an answer and each of its parts have.
type envelope struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int64       `json:"created"`
	Model   string      `json:"model"`
	Choices []choice    `json:"choices"`
	Usage   *object     `json:"usage,omitempty"`
	Topsail *provenance `json:"topsail,omitempty"`
}

// provenance says of an answer what OpenAI's API has no place for: that it is the default, or of a policy that ranks the
// models which one it is of, and why none before it answered.
type provenance struct {
	Default     bool         `json:"default"`
	Explanation string       `json:"default_explanation,omitempty"`
	Model       string       `json:"model,omitempty"`
	PassedOver  []passedOver `json:"passed_over,omitempty"`
}

type passedOver struct {
	Model string `json:"model"`
	Why   string `json:"why"`
}

// provenanceOf is nil where there is nothing to say.
func provenanceOf(p *serving.Prediction) *provenance {
	if !p.Default && !p.Ranked {
		return nil
	}
	said := &provenance{Default: p.Default, Explanation: p.Explanation}
	if !p.Default {
		said.Model = p.Model.String()
	}
	for _, over := range p.PassedOver {
		said.PassedOver = append(said.PassedOver, passedOver{over.ModelID.String(), over.Why.String()})
	}
	return said
}

// said is what a model says, as a whole or in a part: a text, an object of its own, or an answer of
// OpenAI's form.
type said struct {
	whole   object // an object with choices: it is passed on
	text    string
	object  object // a message or a delta
	finish  string
	usage   *object
	choices []object
}

// hear reads an output.
func hear(out *serving.Output) said {
	if out.Value.DType == serving.String && len(out.Value.Shape) == 0 {
		return said{text: string(out.Value.Data)} // as it is, also where it looks like JSON
	}
	return read(out.JSON)
}

// heard reads the output of a prediction, or its default.
func heard(p *serving.Prediction) said {
	if p.Full != nil {
		return hear(p.Full)
	}
	return read(p.Output)
}

// read reads JSON.
func read(out []byte) (s said) {
	out = bytes.TrimSpace(out)
	if len(out) > 0 && out[0] == '"' {
		_ = json.Unmarshal(out, &s.text) // an output is JSON
		return s
	}
	var o struct {
		Content      *string         `json:"content"`
		FinishReason string          `json:"finish_reason"`
		Usage        json.RawMessage `json:"usage"`
		Choices      []object        `json:"choices"`
		Data         []object        `json:"data"`
	}
	if len(out) == 0 || out[0] != '{' || json.Unmarshal(out, &o) != nil {
		s.text = string(out)
		return s
	}
	s.finish = o.FinishReason
	if !isNull(o.Usage) {
		s.usage = &o.Usage
	}
	switch {
	case o.Choices != nil || o.Data != nil:
		s.whole, s.choices = out, o.Choices
	case o.Content != nil:
		s.text = *o.Content
		s.object = out
	default:
		s.object = out
	}
	return s
}

// Answer is the answer to one request.
type Answer struct {
	request *Request
	app     string
	id      string
	created int64
}

// NewAnswer begins the answer of an app to a request. id is the query's.
func NewAnswer(r *Request, app string, id int64, now time.Time) *Answer {
	return &Answer{request: r, app: app, id: r.Kind.prefix() + strconv.FormatInt(id, 10), created: now.Unix()}
}

// QueryID is the query of an answer's id, for feedback; ok is false for what is none.
func QueryID(id string) (query int64, ok bool) {
	for _, kind := range []Kind{Chat, Completion} {
		if text, found := bytes.CutPrefix([]byte(id), []byte(kind.prefix())); found {
			query, err := strconv.ParseInt(string(text), 10, 64)
			return query, err == nil
		}
	}
	return 0, false
}

// Fits says why a prediction is no answer to a completion, or nil: it is a default that is no text, or
// one that the app does not want shown.
func Fits(app *serving.App, p *serving.Prediction) error {
	if !p.Default || !app.DefaultErrors && len(p.Output) > 2 && p.Output[0] == '"' {
		return nil
	}
	return &inference.NoPrediction{Cause: p.Cause, Explanation: p.Explanation}
}

// Cut is the error of an answer that was cut before its end.
func Cut(p *serving.Prediction) error {
	return &inference.NoPrediction{Cause: p.Cause, Explanation: p.Explanation}
}

// Text is what a part adds to the text of an answer.
func Text(out *serving.Output) string {
	s := hear(out)
	return s.words()
}

// words is the text of what is said.
func (s *said) words() string {
	var text strings.Builder
	text.WriteString(s.text)
	for _, one := range s.choices {
		var c struct {
			Text  string
			Delta struct{ Content string }
		}
		_ = json.Unmarshal(one, &c) // what is not text adds none
		text.WriteString(c.Text + c.Delta.Content)
	}
	return text.String()
}

// Append appends the whole answer of a completion. text is what its parts are together, where the
// output was not collected.
func (a *Answer) Append(b []byte, p *serving.Prediction, text string, parts int) ([]byte, error) {
	s := heard(p)
	if p.Full != nil && p.Full.Uncollected {
		s = said{text: text}
	}
	if s.whole != nil {
		return a.rename(b, s.whole, a.request.Kind.object(), provenanceOf(p))
	}
	finish := cmp.Or(s.finish, "stop")
	one := choice{FinishReason: &finish}
	if a.request.Kind == Chat {
		message := a.message(s)
		one.Message = &message
	} else {
		one.Text = &s.text
	}
	e := a.envelope(a.request.Kind.object(), one)
	e.Usage = usage(s.usage, parts)
	e.Topsail = provenanceOf(p)
	return appendJSON(b, e)
}

// AppendAll appends the answer to several prompts, with a choice for each. What models used is in it if all say so.
func (a *Answer) AppendAll(b []byte, ps []serving.Prediction) ([]byte, error) {
	e := a.envelope(a.request.Kind.object())
	var sum Usage
	known := true
	for i := range ps {
		s := heard(&ps[i])
		text, finish := s.words(), cmp.Or(s.finish, "stop")
		e.Choices = append(e.Choices, choice{Index: i, Text: &text, FinishReason: &finish})
		if e.Topsail == nil {
			e.Topsail = provenanceOf(&ps[i])
		}
		var used Usage
		known = known && s.usage != nil && json.Unmarshal(*s.usage, &used) == nil
		sum.PromptTokens += used.PromptTokens
		sum.CompletionTokens += used.CompletionTokens
		sum.TotalTokens += used.TotalTokens
	}
	if known {
		all, _ := json.Marshal(sum) // of numbers
		e.Usage = (*object)(&all)
	}
	return appendJSON(b, e)
}

// message is what an assistant has said.
func (a *Answer) message(s said) object {
	members := map[string]any{}
	if s.object != nil {
		_ = json.Unmarshal(s.object, &members) // an object
		delete(members, "finish_reason")
		delete(members, "usage")
	}
	members["role"] = "assistant"
	if _, has := members["content"]; !has {
		members["content"] = s.text
	}
	text, _ := json.Marshal(members) // of what was JSON
	return text
}

// usage is what the model has said, or counts parts.
func usage(said *object, parts int) *object {
	if said != nil {
		return said
	}
	if parts == 0 {
		return nil // it is not known
	}
	text, _ := json.Marshal(Usage{CompletionTokens: parts, TotalTokens: parts})
	return (*object)(&text)
}

func (a *Answer) envelope(kind string, choices ...choice) *envelope {
	return &envelope{ID: a.id, Object: kind, Created: a.created, Model: a.app, Choices: choices}
}

// rename appends an answer of the model's own with this answer's id, the app as its model, and where it is from, if that
// is to be said.
func (a *Answer) rename(b []byte, whole object, kind string, from *provenance) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(whole, &members); err != nil {
		return b, err
	}
	for name, value := range map[string]any{"id": a.id, "object": kind, "created": a.created, "model": a.app} {
		if name == "id" && a.request.Kind.prefix() == "" {
			continue
		}
		members[name], _ = json.Marshal(value) // texts and numbers
	}
	if from != nil {
		members["topsail"], _ = json.Marshal(from) // likewise
	}
	return appendJSON(b, members)
}

func appendJSON(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(b, text...), err
}

// AppendEmbeddings appends the answer to a request for embeddings, from the predictions of its inputs.
func (a *Answer) AppendEmbeddings(b []byte, ps []serving.Prediction) ([]byte, error) {
	if len(ps) == 1 && ps[0].Full != nil {
		if s := hear(ps[0].Full); s.whole != nil {
			if a.request.Base64 {
				s.whole = dataInBase64(s.whole)
			}
			return a.rename(b, s.whole, a.request.Kind.object(), provenanceOf(&ps[0]))
		}
	}
	type embedding struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	data := make([]embedding, len(ps))
	for i := range ps {
		if ps[i].Full == nil {
			return b, &inference.NoPrediction{Cause: ps[i].Cause, Explanation: ps[i].Explanation}
		}
		vector, err := floats(&ps[i].Full.Value)
		if err != nil {
			return b, &inference.NoPrediction{Cause: serving.ModelError, Explanation: err.Error()}
		}
		data[i] = embedding{"embedding", i, vector}
		if a.request.Base64 {
			data[i].Embedding = inBase64(vector)
		}
	}
	return appendJSON(b, map[string]any{"object": "list", "data": data, "model": a.app, "usage": map[string]int{"prompt_tokens": 0, "total_tokens": 0}})
}

// dataInBase64 is an answer of OpenAI's form whose embeddings are base64.
func dataInBase64(whole object) object {
	var members map[string]json.RawMessage
	var data []map[string]json.RawMessage
	if json.Unmarshal(whole, &members) != nil || json.Unmarshal(members["data"], &data) != nil {
		return whole
	}
	for _, one := range data {
		var vector []float32
		if json.Unmarshal(one["embedding"], &vector) == nil { // else it is a text already
			one["embedding"], _ = json.Marshal(inBase64(vector)) // a text
		}
	}
	members["data"], _ = json.Marshal(data) // of what was JSON
	text, _ := json.Marshal(members)
	return text
}

func inBase64(vector []float32) string {
	data := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(data)
}
