package codec_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

func id(model, version string) serving.ModelID {
	return serving.ModelID{Model: model, Version: version}
}

// What Clipper has comes first, as it was.
func TestAppendDetails(t *testing.T) {
	explained := &serving.Explanation{
		Policy: "vote", Ended: "certain", Confidence: 0.75, Elapsed: 1234567 * time.Nanosecond, Budget: 20 * time.Millisecond,
		Models: []serving.ExplainedModel{
			{ModelID: id("a", "1"), Asked: true, Output: []byte(`[1,2]`), Probability: 0.5, Weight: 1e-7, Confidence: new(0.0), Took: 1500 * time.Microsecond, Cached: true},
			{ModelID: id("b", "1"), Asked: true, Failure: "Model error: \"x\""},
			{ModelID: id("c", "2.1"), Asked: true, Shadow: true, Probability: 1},
			{ModelID: id("d", "1"), Shed: true},
			{ModelID: id("e", "1")},
		},
	}
	const models = `"models":[` +
		`{"model":"a:1","asked":true,"answered":true,"output":[1,2],"probability":0.5,"weight":1e-07,"confidence":0,"took_micros":1500,"cached":true},` +
		`{"model":"b:1","asked":true,"answered":false,"failure":"Model error: \"x\""},` +
		`{"model":"c:2.1","asked":true,"answered":false,"probability":1,"shadow":true},` +
		`{"model":"d:1","asked":false,"answered":false,"shed":true},` +
		`{"model":"e:1","asked":false,"answered":false}]`
	for _, test := range []struct {
		p    serving.Prediction
		want string
	}{
		{serving.Prediction{QueryID: 1, Output: []byte(`2`), Missing: []serving.ModelID{id("a", "1")}},
			`{"query_id":1,"output":2,"default":false,"missing":["a:1"]}`},
		{serving.Prediction{QueryID: 1, Output: []byte(`2`), Shed: []serving.ModelID{id("a", "1"), id("b", "2")}},
			`{"query_id":1,"output":2,"default":false,"shed":["a:1","b:2"]}`},
		{serving.Prediction{QueryID: 1, Output: []byte(`2`), Default: true, Explanation: "late", Missing: []serving.ModelID{id("a", "1")}, Shed: []serving.ModelID{id("b", "1")}},
			`{"query_id":1,"output":2,"default":true,"default_explanation":"late","missing":["a:1"],"shed":["b:1"]}`},
		{serving.Prediction{QueryID: 1, Output: []byte(`2`), Missing: []serving.ModelID{}, Shed: []serving.ModelID{}, Explained: &serving.Explanation{}},
			`{"query_id":1,"output":2,"default":false,"explanation":{"policy":"","ended":"","elapsed_micros":0,"budget_micros":0,"models":[]}}`},
		{serving.Prediction{QueryID: 1, Output: []byte(`2`), Missing: []serving.ModelID{id("b", "1")}, Shed: []serving.ModelID{id("d", "1")}, Explained: explained},
			`{"query_id":1,"output":2,"default":false,"missing":["b:1"],"shed":["d:1"],"explanation":` +
				`{"policy":"vote","ended":"certain","confidence":0.75,"elapsed_micros":1234,"budget_micros":20000,` + models + `}}`},
	} {
		if got := string(codec.AppendPrediction(nil, test.p)); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// anyFloat draws also what JSON has no number for.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, 0}))
}

// Whatever the numbers and texts are, the answer is JSON and has them back.
func TestExplanationsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := serving.ExplainedModel{
			ModelID: id(rapid.String().Draw(t, "model"), "1"), Failure: rapid.String().Draw(t, "failure"),
			Probability: anyFloat().Draw(t, "probability"), Weight: anyFloat().Draw(t, "weight"), Confidence: new(anyFloat().Draw(t, "confidence")),
		}
		p := serving.Prediction{Output: []byte("1"), Explained: &serving.Explanation{
			Ended: rapid.String().Draw(t, "ended"), Confidence: anyFloat().Draw(t, "confidence of all"), Models: []serving.ExplainedModel{m},
		}}
		var got struct {
			Explanation struct {
				Ended      string
				Confidence float64
				Models     []struct {
					Model, Failure      string
					Probability, Weight float64
					Confidence          *float64
				}
			}
		}
		body := codec.AppendPrediction(nil, p)
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		e := got.Explanation
		if e.Ended != p.Explained.Ended || e.Confidence != orZero(p.Explained.Confidence) || len(e.Models) != 1 {
			t.Fatalf("%s", body)
		}
		if g := e.Models[0]; g.Model != m.ModelID.String() || g.Failure != m.Failure || g.Probability != orZero(m.Probability) ||
			g.Weight != orZero(m.Weight) || (g.Confidence != nil) != finite(*m.Confidence) {
			t.Fatalf("%s", body)
		}
	})
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func orZero(x float64) float64 {
	if finite(x) {
		return x
	}
	return 0
}
