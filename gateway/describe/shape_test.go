package describe

import (
	"fmt"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/openapi"
)

// schemaOf is the schema that a document has for the body of an operation on an app of a shape.
func schemaOf(t *testing.T, s shape, operation string) *openapi3.Schema {
	t.Helper()
	id := serving.ModelID{Model: "m", Version: "1"}
	cat := &serving.Catalog{
		Apps:   map[string]*serving.App{"a": {Name: "a", InputType: s.of, Models: []string{"m"}}},
		Models: map[string]*serving.Model{"m": {Name: "m", Current: "1", Versions: map[string]*serving.Version{"1": {ModelID: id, InputType: s.of, InputLength: s.length}}}},
	}
	contract := openapi.Load(t, written(t, cat, func(d *Document) { d.MaxBatch = 2 }))
	return contract[operation].RequestBody.Value.Content["application/json"].Schema.Value
}

// inputs are such as fit some type or length, or none.
var inputs = []string{
	`[]`, `[1]`, `[1,2]`, `[1,2,3]`, `[1,2,3,4]`, `[1.5,-2e3]`, `[0.1,2,3]`, `[true]`, `[false,2]`, `["a"]`, `[null]`, `[[1]]`, `1`, `null`, `true`, `{}`,
	`[2147483647]`, `[2147483648]`, `[-2147483648]`, `[-2147483649]`, `[3.4028235e38]`, `[3.5e38]`, `[-3.5e38]`, `[1e308]`,
	`""`, `"a"`, `"a text"`, `"ü\u0000"`, `"QQ"`, `"QQ=="`, `"QQ="`, `"QUI"`, `"QUI="`, `"QUI=="`, `"QUJD"`, `"QUJDRA"`, `"QUJDRA=="`, `"QUJDRAA"`, `"QUJDRAAA"`,
	`"QUJDREVG"`, `"QUJDREVGRw"`, `"====\"`, `"Q==="`, `"Q"`, `"QUJDR"`, `"Q-_D"`, `"+/+/"`, `"QQ==QQ=="`,
}

// What the schemas say of inputs is what the codec takes.
func TestInputsFitAsTheCodecTakesThem(t *testing.T) {
	for of := serving.Bytes; of <= serving.Strings; of++ {
		for _, length := range map[serving.InputType][]int{serving.Strings: {0}, serving.Bytes: {0, 2, 3, 4}, serving.Ints: {0}, serving.Floats: {0}, serving.Doubles: {0, 2}}[of] {
			s := shape{of: of, length: length}
			schema := schemaOf(t, s, "predict_a")
			for _, input := range inputs {
				for _, body := range []string{`{"input":` + input + `}`, `{"input_batch":[` + input + `]}`} {
					r, err := codec.DecodePredict([]byte(body), &serving.App{InputType: of}, 2)
					all := append(r.Batch, r.Input)
					taken := err == nil && (length == 0 || all[0].Len() == length)
					if misfit := openapi.Fits(schema, []byte(body), openapi3.VisitAsRequest()); taken != (misfit == nil) {
						t.Errorf("%v: %s is taken = %v (%v), and the schema says %v", s, body, taken, err, misfit)
					}
				}
			}
			if made := s.made(); !s.takes(string(made)) {
				t.Errorf("%v: the example %s is none", s, made)
			}
		}
	}
}

// The same for what stands beside the inputs, and for feedback.
func TestKeysFitAsTheCodecTakesThem(t *testing.T) {
	s := shape{of: serving.Doubles}
	query, update := schemaOf(t, s, "predict_a"), schemaOf(t, s, "update_a")
	values := []string{`null`, `true`, `1`, `0`, `-1`, `0.5`, `1.5`, `"a"`, `""`, `[]`, `[1]`, `{}`, `9007199254740991`, `9007199254740992`, `"` + fmt.Sprintf("%0257d", 0) + `"`}
	for _, key := range []string{"version", "uid", "slo_micros", "salt", "no_cache", "context", "explain", "label", "other", "inputs", "candidate_models", "strict", "priority"} {
		for _, value := range values {
			body := fmt.Sprintf(`{"input":[1],%q:%s}`, key, value)
			_, err := codec.DecodePredict([]byte(body), &serving.App{InputType: s.of}, 2)
			if misfit := openapi.Fits(query, []byte(body), openapi3.VisitAsRequest()); (err == nil) != (misfit == nil) {
				t.Errorf("%s: %v, and the schema says %v", body, err, misfit)
			}
		}
	}
	var bodies []string
	for _, key := range []string{"query_id", "input", "label", "reward", "uid", "context", "feedback_id", "other", "strict"} {
		for _, value := range values {
			bodies = append(bodies, fmt.Sprintf(`{%q:%s}`, key, value))
			if key != "input" {
				bodies = append(bodies, fmt.Sprintf(`{"input":[1],%q:%s}`, key, value), fmt.Sprintf(`{"feedback_batch":[{"query_id":1,"reward":1},{"input":[1],%q:%s}]}`, key, value))
			}
			if key != "query_id" && key != "label" {
				bodies = append(bodies, fmt.Sprintf(`{"query_id":1,"label":2,%q:%s}`, key, value))
			}
		}
	}
	bodies = append(bodies, `[]`, `{"feedback_batch":[]}`, `{"feedback_batch":{}}`, `{"feedback_batch":[1]}`, `{"feedback_batch":[{}]}`,
		`{"feedback_batch":[{"query_id":1,"reward":1},{"query_id":1,"reward":1},{"query_id":1,"reward":1}]}`,
		`{"feedback_batch":[],"query_id":1,"label":1}`, `{"feedback_batch":[],"uid":1}`)
	for _, body := range bodies {
		_, err := codec.DecodeUpdate([]byte(body), &serving.App{InputType: s.of}, 2)
		if misfit := openapi.Fits(update, []byte(body), openapi3.VisitAsRequest()); (err == nil) != (misfit == nil) {
			t.Errorf("%s: %v, and the schema says %v", body, err, misfit)
		}
	}
}
