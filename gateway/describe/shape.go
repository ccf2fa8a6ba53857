package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// shape is what inputs are alike in.
type shape struct {
	of     serving.InputType
	length int    // elements; 0: any number
	inputs string // of tensors: those of the signature, as JSON
}

func (s shape) compare(other shape) int {
	return cmp.Or(cmp.Compare(s.of, other.of), cmp.Compare(s.length, other.length), cmp.Compare(s.inputs, other.inputs))
}

// shapeOf is what inputs an app takes. They have a certain length where all versions that it
// asks about them take that one.
func shapeOf(app *serving.App, cat *serving.Catalog) shape {
	if app.InputType == serving.Tensors {
		inputs, _ := json.Marshal(app.Signature.InputTensors()) // of texts and numbers: this cannot fail
		return shape{of: app.InputType, inputs: string(inputs)}
	}
	return shape{of: app.InputType, length: inference.InputLength(app, cat)}
}

// appendName appends the name of the inputs' schema, with which the names of the others begin.
func (s shape) appendName(b []byte) []byte {
	b = append(b, [...]string{serving.Bytes: "Bytes", serving.Ints: "Integers", serving.Floats: "Floats", serving.Doubles: "Doubles", serving.Strings: "Strings", serving.Tensors: "Tensors", serving.Chat: "Chat"}[s.of]...)
	if s.inputs != "" { // a signature has no name of its own
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(s.inputs)) // cannot fail
		return fmt.Appendf(b, "%08x", hash.Sum32())
	}
	if s.length == 0 {
		return b
	}
	return strconv.AppendInt(b, int64(s.length), 10)
}

// The schemas say with words that generators of clients skip, if and not, what these could make
// nothing of.

// appendQuery appends the schemas of an input, of a query and of the request for one or several,
// behind others.
func (s shape) appendQuery(b []byte, maxBatch int) []byte {
	name := s.appendName(nil)
	b = append(fmt.Appendf(b, `,"%s":`, name), s.input()...)
	b = fmt.Appendf(b, `,"%[1]sQuery":{"allOf":[{"$ref":"#/components/schemas/Options"},{"type":"object","properties":{`+
		`"input":{"$ref":"#/components/schemas/%[1]s"},"inputs":%[2]s},"oneOf":[{"required":["input"]},{"required":["inputs"]}]}]}`, name, s.named(name))
	b = fmt.Appendf(b, `,"%[1]sBatchQuery":{"allOf":[{"$ref":"#/components/schemas/Options"},{"type":"object","required":["input_batch"],"properties":{`+
		`"input_batch":{"type":"array","maxItems":%[2]d,"items":{"$ref":"#/components/schemas/%[1]s"}}},"not":{"anyOf":[{"required":["input"]},{"required":["inputs"]}]}}]}`, name, maxBatch)
	return fmt.Appendf(b, `,"%[1]sRequest":{"anyOf":[{"$ref":"#/components/schemas/%[1]sQuery"},{"$ref":"#/components/schemas/%[1]sBatchQuery"}],`+
		lenient+`,"else":{"propertyNames":{"enum":%[2]s}}}`, name, list(codec.QueryMembers()))
}

// lenient begins what holds unless a body says "strict": false.
const lenient = `"if":{"required":["strict"],"properties":{"strict":{"enum":[false]}}}`

// named is the schema of "inputs": those of a signature, or the one input of an app without.
func (s shape) named(name []byte) string {
	ref := fmt.Sprintf(`{"$ref":"#/components/schemas/%s"}`, name)
	if s.of == serving.Tensors {
		return ref
	}
	return `{"type":"object","additionalProperties":false,"required":["input"],"properties":{"input":` + ref + `}}`
}

// list is a list of names as JSON.
func list(names []string) []byte {
	text, _ := json.Marshal(names) // of texts: this cannot fail
	return text
}

// appendFeedback appends the schemas of feedback, behind others.
func (s shape) appendFeedback(b []byte, maxBatch int) []byte {
	name := s.appendName(nil)
	b = fmt.Appendf(b, `,"%[1]sFeedback":{"allOf":[{"$ref":"#/components/schemas/Judgement"},{"type":"object","properties":{`+
		`"input":{"$ref":"#/components/schemas/%[1]s"}},"if":{"not":{"required":["query_id"]}},"then":{"required":["input"]}}]}`, name)
	b = fmt.Appendf(b, `,"%[1]sFeedbackBatch":{"type":"object","required":["feedback_batch"],"properties":{`+
		`"feedback_batch":{"type":"array","maxItems":%[2]d,"items":{"$ref":"#/components/schemas/%[1]sFeedback"}}},`+
		`"not":{"$ref":"#/components/schemas/BesideABatch"}}`, name, maxBatch)
	return fmt.Appendf(b, `,"%[1]sUpdate":{"oneOf":[{"$ref":"#/components/schemas/%[1]sFeedback"},{"$ref":"#/components/schemas/%[1]sFeedbackBatch"}],`+
		`"properties":{"strict":{"type":"boolean"}},`+
		lenient+`,"else":{"propertyNames":{"enum":%[2]s},"properties":{"feedback_batch":{"items":{"propertyNames":{"enum":%[2]s}}}}},`+
		`"examples":[{"query_id":4194304,"reward":1}]}`, name, list(codec.FeedbackMembers()))
}

// input is the schema of an input.
func (s shape) input() string {
	element := `{"type":["number","boolean"],"format":"double","description":"true is 1, false is 0"}`
	switch s.of {
	case serving.Tensors:
		return s.tensors()
	case serving.Strings:
		return `{"type":"string"}`
	case serving.Chat:
		return `{"type":"object"}`
	case serving.Bytes:
		return s.base64()
	case serving.Ints:
		element = `{"type":["integer","boolean"],"format":"int32","minimum":-2147483648,"maximum":2147483647,"description":"without point or exponent; true is 1, false is 0"}`
	case serving.Floats:
		element = `{"type":["number","boolean"],"format":"float","minimum":-3.4028235e38,"maximum":3.4028235e38,"description":"true is 1, false is 0"}`
	}
	if s.length == 0 {
		return `{"type":"array","minItems":1,"items":` + element + `}`
	}
	return fmt.Sprintf(`{"type":"array","minItems":%[1]d,"maxItems":%[1]d,"items":%[2]s}`, s.length, element)
}

// base64 is the schema of bytes: of so many the text has one length without its padding, and
// another with it.
func (s shape) base64() string {
	const four = `^(?:[A-Za-z0-9+/]{4})*`
	one, two, three := `[A-Za-z0-9+/]{2}(?:==)?`, `[A-Za-z0-9+/]{3}=?`, `[A-Za-z0-9+/]{4}`
	last := `(?:` + one + `|` + two + `|` + three + `)`
	if s.length == 0 {
		return fmt.Sprintf(`{"type":"string","contentEncoding":"base64","pattern":"%s%s$"}`, four, last)
	}
	last = [...]string{three, one, two}[s.length%3]
	return fmt.Sprintf(`{"type":"string","contentEncoding":"base64","pattern":"%s%s$","minLength":%d,"maxLength":%d,"description":"%d bytes"}`,
		four, last, (4*s.length+2)/3, (s.length+2)/3*4, s.length)
}
