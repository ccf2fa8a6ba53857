package api

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/web/rest"
)

const mostExact = 1 << 53 // what floats count to, one by one

// Clients of other languages write whole numbers as floats.
func TestWholeNumbers(t *testing.T) {
	w := having(t)
	expect(t, w.ask("POST", "/apps", `{"name":"c","input_type":"d","latency_slo_micros":20000.0,"weight":2.5,
		"policy":{"kind":"versions","min_answers":3e1,"share":0.5,"canary":"1"},"limit":{"per_second":2.0,"burst":4.0}}`), 201,
		`"latency_slo_micros":20000,`, `"min_answers":30`, `"share":0.5`, `"burst":4`, `"weight":2.5`)
	expect(t, w.ask("PATCH", "/apps/c", `{"latency_slo_micros":3.0e4,"policy":{"ramp_seconds":60.0}}`), 200, `"latency_slo_micros":30000,`, `"ramp_seconds":60`)
	expect(t, w.ask("PUT", "/apps/c/policy", `{"record_seconds":60.0}`), 200, `"record_seconds":60`)
	expect(t, w.ask("PUT", "/models/m/versions/1/scale", `{"replicas":-0.0}`), 200, `"replicas":0`)
	for body, says := range map[string]string{
		`{"replicas":1.5}`:    `\"replicas\" must be a whole number that fits, not 1.5`,
		`{"replicas":1e400}`:  `not 1e400`,
		`{"replicas":1e300}`:  `not 1e300`,
		`{"replicas":"2.0"}`:  `not a string`,
		`{"replicas":1e-300}`: `not 1e-300`,
	} {
		expectCode(t, w.ask("PUT", "/models/m/versions/1/scale", body), 400, "invalid", says)
	}
	expectCode(t, w.ask("PATCH", "/apps/c", `{"policy":{"ramp_seconds":0.5}}`), 400, "invalid", "whole number")
}

// Numbers may stand anywhere in a text, and nothing else in it changes.
func TestWholeNumbersProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Range(-mostExact, mostExact), 1, 9).Draw(t, "numbers")
		format := rapid.SampledFrom([]string{"%.1f", "%.3f", "%.20e", "%.0f"})
		text := `{"text":"1.0 é","list":[`
		for i, n := range numbers {
			text += map[bool]string{true: " ,\t"}[i > 0] + fmt.Sprintf(format.Draw(t, "format"), float64(n))
		}
		var got struct {
			Text string  `json:"text"`
			List []int64 `json:"list"`
		}
		if err := rest.Decode([]byte(text+"] }"), &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, n := range numbers {
			if got.List[i] != n || got.Text != "1.0 é" {
				t.Fatalf("%s is read as %+v", text, got)
			}
		}
		f := rapid.Float64().Draw(t, "float")
		written, _ := json.Marshal(f)
		err := rest.Decode(fmt.Appendf(nil, `{"n":%s}`, written), &struct {
			N int64 `json:"n"`
		}{})
		if whole := f == math.Trunc(f); err == nil && !whole || err != nil && whole && math.Abs(f) <= mostExact {
			t.Fatalf("%s: %v", written, err)
		}
	})
}
