package openai

import (
	"bytes"
	"encoding/json"

	"github.com/topsail-serving/topsail/serving"
)

// Chunks writes an answer in parts, as server-sent events.
type Chunks struct {
	answer *Answer
	parts  int
	finish string  // as the model has said
	usage  *object // the same
	whole  bool    // the model says chunks of OpenAI's form
}

// NewChunks begins the parts of an answer.
func NewChunks(a *Answer) *Chunks { return &Chunks{answer: a} }

// Part appends the event of a part.
func (c *Chunks) Part(b []byte, out *serving.Output) []byte {
	c.parts++
	s := hear(out)
	if s.usage != nil {
		c.usage = s.usage
	}
	if s.finish != "" {
		c.finish = s.finish
	}
	if s.whole != nil {
		c.whole = true
		if len(s.choices) == 0 {
			return b // usage, which goes last
		}
		return c.event(b, func(b []byte) ([]byte, error) {
			return c.answer.rename(b, inParts(s.whole), c.answer.request.Kind.chunk(), nil)
		})
	}
	return c.choice(b, c.delta(s))
}

// inParts is a chunk that the model says; of a whole answer, as from the cache, the messages are the deltas, and
// usage goes last.
func inParts(said object) object {
	if !bytes.Contains(said, []byte(`"message"`)) {
		return said
	}
	var members map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(said, &members) != nil || json.Unmarshal(members["choices"], &choices) != nil {
		return said
	}
	for _, one := range choices {
		if message, whole := one["message"]; whole {
			one["delta"] = message
			delete(one, "message")
			delete(members, "usage")
		}
	}
	members["choices"], _ = json.Marshal(choices) // of what was JSON
	text, _ := json.Marshal(members)
	return text
}

// delta is a part as a choice has it.
func (c *Chunks) delta(s said) choice {
	if c.answer.request.Kind != Chat {
		return choice{Text: &s.text}
	}
	members := map[string]any{}
	if s.object != nil {
		_ = json.Unmarshal(s.object, &members) // an object
		delete(members, "finish_reason")
		delete(members, "usage")
	} else {
		members["content"] = s.text
	}
	if c.parts == 1 {
		members["role"] = "assistant"
	}
	text, _ := json.Marshal(members) // of what was JSON
	return choice{Delta: (*object)(&text)}
}

// End appends what is behind the last part. begun says that there was one; else the prediction is a
// default that Fits, and is the answer.
func (c *Chunks) End(b []byte, p *serving.Prediction, begun bool) []byte {
	if p.Default && begun {
		return AppendEvent(b, AppendError(nil, p.Cause, p.Explanation))
	}
	if p.Default {
		c.parts++
		b = c.choice(b, c.delta(heard(p)))
	}
	if !c.whole {
		b = c.finished(b, p)
	}
	if c.answer.request.Usage {
		e := c.answer.envelope(c.answer.request.Kind.chunk())
		e.Choices, e.Usage = []choice{}, usage(c.usage, c.parts)
		if c.whole { // the model's own chunks do not say it
			e.Topsail = provenanceOf(p)
		}
		b = c.event(b, func(b []byte) ([]byte, error) { return appendJSON(b, e) })
	}
	return append(b, "data: [DONE]\n\n"...)
}

// finished appends the chunk that says why the answer ended.
func (c *Chunks) finished(b []byte, p *serving.Prediction) []byte {
	if whole := heard(p); c.finish == "" {
		c.finish = whole.finish
		if c.usage == nil {
			c.usage = whole.usage
		}
	}
	if c.finish == "" {
		c.finish = "stop"
	}
	one := choice{FinishReason: &c.finish}
	if c.answer.request.Kind == Chat {
		empty := object("{}")
		one.Delta = &empty
	} else {
		empty := ""
		one.Text = &empty
	}
	e := c.answer.envelope(c.answer.request.Kind.chunk(), one)
	e.Topsail = provenanceOf(p)
	return c.event(b, func(b []byte) ([]byte, error) { return appendJSON(b, e) })
}

func (c *Chunks) choice(b []byte, one choice) []byte {
	return c.event(b, func(b []byte) ([]byte, error) {
		return appendJSON(b, c.answer.envelope(c.answer.request.Kind.chunk(), one))
	})
}

// event appends an event, unless its data cannot be written.
func (c *Chunks) event(b []byte, data func([]byte) ([]byte, error)) []byte {
	all, err := data(append(b, "data: "...))
	if err != nil {
		return b
	}
	return append(all, "\n\n"...)
}

// AppendEvent appends an event with JSON data.
func AppendEvent(b, data []byte) []byte {
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}
