package admin

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// An app of 30 s would lose each answer that takes its time, were that how long the command waits.
func TestPredictWaitsForEverySLO(t *testing.T) {
	timeout, err := predictCommand().Flags().GetDuration("timeout")
	if err != nil || timeout <= serving.MaxSLO {
		t.Errorf("%v, %v", timeout, err)
	}
}

func TestPredict(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /wine/predict", answer{status: 200, body: `{"query_id": 1, "output": {"a": [1, 2]}, "default": false}`})
	file := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.WriteFile(file, []byte(" [1.5,\n2] \n"), 0o600))
	for _, test := range []struct {
		args []string
		body string
	}{
		{[]string{"[1, 2]"}, `{"input":[1,2]}`},
		{[]string{"good film"}, `{"input":"good film"}`},
		{[]string{`"7"`}, `{"input":"7"}`},
		{[]string{"@" + file}, "{\"input\":[1.5,2]}"},
		{[]string{"@" + file, "--bytes"}, `{"input":"IFsxLjUsCjJdIAo="}`},
		{[]string{"-"}, `{"input":"from stdin"}`},
		{[]string{"[[1], [2]]", "--batch"}, `{"input_batch":[[1],[2]]}`},
		{[]string{`{"image": [[1]], "text": "a"}`, "--candidate-models", "forest,linear:2", "--priority", "2"}, `{"candidate_models":["forest","linear:2"],"input":{"image":[[1]],"text":"a"},"priority":2}`},
		{[]string{"1", "--uid", "ann", "--context", "c", "--version", "2", "--slo", "5ms", "--explain"}, `{"context":"c","explain":true,"input":1,"slo_micros":5000,"uid":"ann","version":"2"}`},
	} {
		f.asked = nil
		r := f.runWith(t.Context(), t, "from stdin\n", append([]string{"predict", "wine"}, test.args...)...)
		if sent := f.requests(); r.status != 0 || len(sent) != 1 || sent[0].body != test.body {
			t.Errorf("%v: %+v %+v", test.args, r, sent)
		}
	}
	r := f.run(t, "predict", "wine", "1")
	if r.out != "{\"a\": [1, 2]}\n" || !strings.HasSuffix(r.err, "s\n") {
		t.Errorf("%+v", r)
	}
	f.answers["POST /wine/predict"] = []answer{{status: 200, body: `{"output": -1, "default": true, "default_explanation": "Model error: \u001b[2J", "missing": ["slow:1"], "shed": ["b:1"], "explanation": {"policy": "vote"}}`}}
	r = f.run(t, "predict", "wine", "1")
	if want := "the default: Model error: ?[2J\nno answer came from slow:1\nnot called, for lack of time or capacity: b:1\n{\"policy\": \"vote\"}\n"; r.out != "-1\n" || !strings.HasPrefix(r.err, want) {
		t.Errorf("%+v", r)
	}
	f.answers["POST /wine/predict"] = []answer{{status: 200, body: `{"output": 3, "model": "small:1", "passed_over": [{"model": "big:1", "why": "refused_late"}], "missing": ["big:1"]}`}}
	r = f.run(t, "predict", "wine", "1")
	if want := "small:1 answered\nbig:1 did not answer: refused_late\n"; r.out != "3\n" || !strings.HasPrefix(r.err, want) || strings.Contains(r.err, "no answer") {
		t.Errorf("%+v", r)
	}
	f.answers["POST /wine/predict"] = []answer{{status: 200, body: `{"batch_predictions": [{"output": 1}, {"output": 2, "default": true, "default_explanation": "late"}]}`}}
	r = f.run(t, "predict", "wine", "[1, 2]", "--batch")
	if r.out != "1\n2\n" || !strings.HasPrefix(r.err, "2: the default: late\n") {
		t.Errorf("%+v", r)
	}
	f.answers["POST /wine/predict"] = []answer{{status: 200, body: `{"query_id": 1, "output": 7, "default": false}`}}
	if r = f.run(t, "predict", "wine", "[[1]]", "--batch"); r.out != "7\n" || r.status != 0 {
		t.Errorf("a batch of one: %+v", r)
	}
	if r = f.run(t, "predict", "wine", "1", "-o", "json"); !json.Valid([]byte(r.out)) || r.err != "" {
		t.Errorf("%+v", r)
	}
}

func TestFeedback(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /wine/update", answer{status: 200, body: `{"received": true, "joined": "record", "duplicate": false, "loss": 0.5, "trained": [{"user": "ann"}, {}]}`})
	for _, test := range []struct {
		args []string
		body string
	}{
		{[]string{"--query-id", "7", "--label", "0"}, `{"label":0,"query_id":7}`},
		{[]string{"--input", "[1]", "--label", "cat", "--uid", "ann"}, `{"input":[1],"label":"cat","uid":"ann"}`},
		{[]string{"--query-id", "7", "--reward", "0", "--context", "c"}, `{"context":"c","query_id":7,"reward":0}`},
	} {
		f.asked = nil
		r := f.run(t, append([]string{"feedback", "wine"}, test.args...)...)
		if sent := f.requests(); r.status != 0 || r.out != "the loss was 0.5, and 2 states learned from it\n" || sent[0].body != test.body || sent[0].header.Get("Accept") != "application/json" {
			t.Errorf("%v: %+v %+v", test.args, r, sent)
		}
	}
	f.answers["POST /wine/update"] = []answer{{status: 200, body: `{"duplicate": true}`}}
	if r := f.run(t, "feedback", "wine", "--query-id", "7", "--label", "0"); r.out != "this answer already had feedback; nothing was learned\n" {
		t.Errorf("%+v", r)
	}
	f.answers["POST /wine/update"] = []answer{{status: 200, body: `{"trained": []}`}}
	if r := f.run(t, "feedback", "wine", "--query-id", "7", "--label", "0"); r.out != "the feedback is stored, and nothing learned from it\n" {
		t.Errorf("%+v", r)
	}
}

// TestValues holds that JSON goes as it is.
func TestValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOf(rapid.Float64Range(-math.MaxFloat32, math.MaxFloat32)).Draw(t, "value")
		text, err := json.Marshal(value)
		require.NoError(t, err)
		got, err := parseValue([]byte(" " + string(text) + "\n"))
		if err != nil || string(got) != string(text) {
			t.Fatalf("%s is read as %s, %v", text, got, err)
		}
	})
}

// FuzzValue holds that what is taken is JSON, and text only where nobody can mean JSON.
func FuzzValue(f *testing.F) {
	for _, text := range []string{"[1", "1.5", "nan", "good film", `"`, "", " \n", "\xff", "-", "{}", "null", "+1", "tru"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseValue(text)
		if err != nil {
			return
		}
		var s string
		if !json.Valid(got) || !json.Valid(bytes.TrimSpace(text)) && (json.Unmarshal(got, &s) != nil || s != strings.TrimSpace(string(text))) {
			t.Fatalf("%q is read as %s", text, got)
		}
	})
}
