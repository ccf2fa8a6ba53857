package codec_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestAppendPrediction(t *testing.T) {
	for _, test := range []struct {
		p    serving.Prediction
		want string
	}{
		{serving.Prediction{QueryID: 7, Output: []byte(`[1,2.5]`), Explanation: "not shown"},
			`{"query_id":7,"output":[1,2.5],"default":false}`},
		{serving.Prediction{QueryID: 1<<53 - 1, Output: []byte(`"none"`), Default: true},
			`{"query_id":9007199254740991,"output":"none","default":true}`},
		{serving.Prediction{QueryID: 7, Output: []byte(`1`), Ranked: true, Model: serving.ModelID{Model: "m", Version: "2"}},
			`{"query_id":7,"output":1,"default":false,"model":"m:2"}`},
		{serving.Prediction{QueryID: 7, Output: []byte(`1`), Ranked: true, Model: serving.ModelID{Model: "s", Version: "1"}, PassedOver: []serving.PassedOver{
			{ModelID: serving.ModelID{Model: "m", Version: "2"}, Why: serving.RefusedLate}, {ModelID: serving.ModelID{Model: "n", Version: "1"}, Why: serving.NoReplica},
		}},
			`{"query_id":7,"output":1,"default":false,"model":"s:1","passed_over":[{"model":"m:2","why":"refused_late"},{"model":"n:1","why":"no_replica"}]}`},
		{serving.Prediction{QueryID: 7, Output: []byte(`1`), Failover: []serving.ModelID{{Model: "m", Version: "2"}}},
			`{"query_id":7,"output":1,"default":false,"failover":["m:2"]}`},
		{serving.Prediction{QueryID: 0, Output: []byte(`null`), Default: true, Explanation: "Model error: \"x\"\n\t\\ ä\xff\x00"},
			`{"query_id":0,"output":null,"default":true,"default_explanation":"Model error: \"x\"\n\u0009\\ ä` + "\ufffd" + `\u0000"}`},
	} {
		if got := string(codec.AppendPrediction([]byte("> "), test.p)); got != "> "+test.want {
			t.Errorf("got  %s\nwant > %s", got, test.want)
		}
	}
}

func TestAppendBatch(t *testing.T) {
	a := serving.Prediction{QueryID: 1, Output: []byte(`1`)}
	b := serving.Prediction{QueryID: 2, Output: []byte(`0`), Default: true}
	for want, ps := range map[string][]serving.Prediction{
		`{"batch_predictions":[]}`:                  {},
		`{"query_id":1,"output":1,"default":false}`: {a},
		`{"batch_predictions":[{"query_id":2,"output":0,"default":true},{"query_id":1,"output":1,"default":false}]}`: {b, a},
	} {
		if got := string(codec.AppendBatch(nil, ps)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Any text comes back from encoding/json as it went in, when it is UTF-8, and
// otherwise as encoding/json itself would have written it.
func TestAppendErrorIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cause := string(rapid.SliceOf(rapid.Byte()).Draw(t, "cause"))
		if rapid.Bool().Draw(t, "valid") {
			cause = rapid.String().Draw(t, "text")
		}
		type body struct {
			Error string `json:"error"`
			Cause string `json:"cause"`
		}
		var got, want body
		require.NoError(t, json.Unmarshal(codec.AppendError(nil, codec.ErrorClass, cause), &got))
		reference, err := json.Marshal(body{codec.ErrorClass, cause})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(reference, &want))
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
