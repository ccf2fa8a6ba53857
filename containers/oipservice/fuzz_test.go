package oipservice

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// FuzzAnswer reads what a server may answer: what is taken is what its shapes say.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [[1, null]]}]}`,
		`{"outputs": [{"name": "y", "datatype": "BYTES", "shape": [1], "data": ["a"]}, {"name": "z", "datatype": "BOOL", "shape": [], "data": [true]}]}`,
		`{"outputs": [{"name": "label", "datatype": "INT64", "shape": [1, 1], "parameters": {"binary_data_size": 8}}]}12345678`,
	} {
		f.Add([]byte(text), "")
		f.Add([]byte(text), "117")
	}
	layouts := []layout{{}, {named: true}, {named: true, outputs: pair.Outputs}}
	f.Fuzz(func(t *testing.T, body []byte, head string) {
		for _, l := range layouts {
			values, err := l.answer(append([]byte(nil), body...), head)
			if err != nil {
				continue
			}
			if !l.named && len(values) != 1 {
				t.Fatalf("%d values", len(values))
			}
			for _, v := range values {
				if err := v.Check(); err != nil && v.DType != serving.String {
					t.Fatalf("%v %v: %v", v.DType, v.Shape, err)
				}
			}
		}
	})
}
