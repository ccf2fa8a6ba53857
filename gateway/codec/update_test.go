package codec_test

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// label is the output that a label should become.
func label(text string, compact ...string) *serving.Output {
	o := &serving.Output{Value: serving.Value{DType: serving.JSON, Data: []byte(text)}, JSON: []byte(text)}
	if len(compact) > 0 {
		o.JSON = []byte(compact[0])
	}
	return o
}

func TestDecodeUpdate(t *testing.T) {
	for _, test := range []struct {
		t    serving.InputType
		body string
		want serving.Feedback
	}{
		// Clipper's
		{serving.Doubles, `{"uid":0,"input":[1.5,2.0],"label":1.0}`, serving.Feedback{User: "0", Input: doubles(1.5, 2), Label: label("1.0")}},
		{serving.Strings, `{"uid":7,"input":"a","label":-2e3}`, serving.Feedback{User: "7", Input: text("a"), Label: label("-2e3")}},
		{serving.Bytes, `{"input":"QQ==","label":1}`, serving.Feedback{Input: blob("A"), Label: label("1")}},
		{serving.Ints, ` { "label" : 0 , "input" : [ 3 ] , "uid" : "ann" } `, serving.Feedback{User: "ann", Input: ints(3), Label: label("0")}},
		// labels of every type
		{serving.Floats, `{"input":[1],"label":"cat"}`, serving.Feedback{Input: floats(1), Label: label(`"cat"`)}},
		{serving.Floats, `{"input":[1],"label":""}`, serving.Feedback{Input: floats(1), Label: label(`""`)}},
		{serving.Floats, `{"input":[1],"label":"NaN"}`, serving.Feedback{Input: floats(1), Label: label(`"NaN"`)}},
		{serving.Floats, `{"input":[1],"label":true}`, serving.Feedback{Input: floats(1), Label: label("true")}},
		{serving.Floats, `{"input":[1],"label":false}`, serving.Feedback{Input: floats(1), Label: label("false")}},
		{serving.Floats, `{"input":[1],"label":[1, 2.5]}`, serving.Feedback{Input: floats(1), Label: label("[1, 2.5]", "[1,2.5]")}},
		{serving.Floats, `{"input":[1],"label": {"a": [null]} }`, serving.Feedback{Input: floats(1), Label: label(`{"a": [null]}`, `{"a":[null]}`)}},
		{serving.Floats, `{"input":[1],"label":12345678901234567890123456789}`, serving.Feedback{Input: floats(1), Label: label("12345678901234567890123456789")}},
		// rewards
		{serving.Doubles, `{"input":[1],"reward":1}`, serving.Feedback{Input: doubles(1), Reward: new(1.0)}},
		{serving.Doubles, `{"input":[1],"reward":0}`, serving.Feedback{Input: doubles(1), Reward: new(0.0)}},
		{serving.Doubles, `{"input":[1],"reward":0.25}`, serving.Feedback{Input: doubles(1), Reward: new(0.25)}},
		{serving.Doubles, `{"input":[1],"reward":1e-400}`, serving.Feedback{Input: doubles(1), Reward: new(0.0)}},
		// ids
		{serving.Doubles, `{"query_id":1,"feedback_id":"f","reward":1}`, serving.Feedback{ID: "f", QueryID: 1, Reward: new(1.0)}},
		{serving.Doubles, `{"query_id":1,"feedback_id":7,"reward":1}`, serving.Feedback{ID: "7", QueryID: 1, Reward: new(1.0)}},
		{serving.Doubles, `{"query_id":1,"reward":1}`, serving.Feedback{QueryID: 1, Reward: new(1.0)}},
		{serving.Doubles, `{"query_id":9007199254740991,"context":"c","reward":1}`, serving.Feedback{QueryID: 1<<53 - 1, Context: "c", Reward: new(1.0)}},
		{serving.Ints, `{"query_id":5,"input":[2],"context":3,"label":1}`, serving.Feedback{QueryID: 5, Context: "3", Input: ints(2), Label: label("1")}},
		// keys that mean nothing, and keys that come twice
		{serving.Ints, `{"else":[{"label":1}],"query_id":5,"label":1,"label":2,"query_id":"x","feedback_batch2":1,"strict":false}`, serving.Feedback{QueryID: 5, Label: label("1")}},
		{serving.Ints, `{"qu\u0065ry_id":5,"l\u0061bel":1}`, serving.Feedback{QueryID: 5, Label: label("1")}},
	} {
		got, err := codec.DecodeUpdate([]byte(test.body), takes(test.t), maxBatch)
		if want := (codec.UpdateRequest{Feedback: []serving.Feedback{test.want}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %v:\n got %+v, %v\nwant %+v", test.body, test.t, got, err, want)
		}
		batch := `{"strict":false,"feedback_batch" : [ ` + test.body + ` , {"query_id":1,"reward":1}]}`
		got, err = codec.DecodeUpdate([]byte(batch), takes(test.t), maxBatch)
		want := codec.UpdateRequest{Batch: true, Feedback: []serving.Feedback{test.want, {QueryID: 1, Reward: new(1.0)}}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %v:\n got %+v, %v\nwant %+v", batch, test.t, got, err, want)
		}
	}
}

func TestDecodeUpdateOfNothing(t *testing.T) {
	got, err := codec.DecodeUpdate([]byte(`{"x":1,"strict":false,"feedback_batch":[ ],"feedback_batch":[1]}`), takes(serving.Doubles), maxBatch)
	if want := (codec.UpdateRequest{Batch: true, Feedback: []serving.Feedback{}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecodeUpdateErrors(t *testing.T) {
	const name = " must be a string or a whole number, of at most 256 bytes"
	long := `"` + strings.Repeat("u", 10_000) + `"`
	for _, test := range []struct{ body, detail string }{
		// not an object
		{`[]`, "the body must be an object, and is an array"},
		{`1`, "the body must be an object, and is a number"},
		{`null`, "the body must be an object, and is null"},
		{``, "the body is empty: send JSON, such as {\"input\": [1.5, 2]}"},

		// too little and too much
		{`{}`, "the body needs the key \"query_id\" or \"input\""},
		{`{"uid":1,"label":1}`, "the body needs the key \"query_id\" or \"input\""},
		{`{"uid":1,"reward":1}`, "the body needs the key \"query_id\" or \"input\""},
		{`{"input":[1]}`, "the body needs the key \"label\" or \"reward\""},
		{`{"query_id":1}`, "the body needs the key \"label\" or \"reward\""},
		{`{"query_id":1,"label":1,"reward":1}`, "the body has both label and reward: give one of them"},
		{`{"feedback_batch":[],"label":1}`, "the body has feedback_batch together with uid, context, input, query_id, feedback_id, label or reward: put these into the elements of the batch"},
		{`{"uid":1,"feedback_batch":[{"query_id":1,"reward":1}]}`, "the body has feedback_batch together with uid, context, input, query_id, feedback_id, label or reward: put these into the elements of the batch"},
		{`{"feedback_batch":[{"query_id":1,"reward":1},{"query_id":1}]}`, "feedback_batch[1] needs the key \"label\" or \"reward\""},
		{`{"feedback_batch":[{"feedback_batch":[]}]}`, "feedback_batch[0] needs the key \"query_id\" or \"input\""},
		{`{"feedback_batch":[{"query_id":1,"reward":1},{"query_id":1,"reward":1},{"query_id":1,"reward":1},{}]}`,
			"feedback_batch has more than 3 elements: send them in several requests"},

		// wrong types
		{`{"feedback_batch":{}}`, "feedback_batch must be an array of objects, and is an object"},
		{`{"feedback_batch":null}`, "feedback_batch must be an array of objects, and is null"},
		{`{"feedback_batch":[1]}`, "feedback_batch[0] must be an object, and is a number"},
		{`{"query_id":1,"label":null}`, "label must not be null"},
		{`{"query_id":1,"reward":"1"}`, "reward must be a number, and is a string"},
		{`{"query_id":1,"reward":null}`, "reward must be a number, and is null"},
		{`{"query_id":1,"reward":[1]}`, "reward must be a number, and is an array"},
		{`{"input":"a","label":1}`, "input must be an array of numbers, such as [1.5, 2], and is a string"},
		{`{"input":["1"],"label":1}`, "input[0] must be a number, and is a string"},
		{`{"input":[],"label":1}`, "input is empty: give at least one number"},
		{`{"uid":null,"query_id":1,"label":1}`, "uid must be a string or a whole number, of at most 256 bytes"},
		{`{"uid":1.5,"query_id":1,"label":1}`, "uid must be a string or a whole number, of at most 256 bytes"},
		{`{"uid":` + long + `,"query_id":1,"label":1}`, "uid" + name},
		{`{"context":` + long + `,"query_id":1,"label":1}`, "context" + name},
		{`{"feedback_batch":[{"uid":{},"query_id":1,"label":1}]}`, "feedback_batch[0].uid" + name},

		// numbers out of range
		{`{"query_id":1,"reward":-0.1}`, "reward must be between 0 and 1"},
		{`{"query_id":1,"reward":1.0000001}`, "reward must be between 0 and 1"},
		{`{"query_id":1,"reward":1e300}`, "reward must be between 0 and 1"},
		{`{"query_id":0,"reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},
		{`{"query_id":-1,"reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},
		{`{"query_id":1.0,"reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},
		{`{"query_id":9007199254740992,"reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},
		{`{"query_id":18446744073709551617,"reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},
		{`{"query_id":"1","reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},
		{`{"query_id":null,"reward":1}`, "query_id must be a whole number above 0 and below 2^53, as an answer had it"},

		// no JSON, also where something else is wrong before
		{`{"query_id":1,"reward":NaN}`, "the body is not JSON: invalid value, at byte 23, as JSON has neither NaN nor Infinity"},
		{`{"query_id":1,"reward":-Infinity}`, "the body is not JSON: invalid value, at byte 23, as JSON has neither NaN nor Infinity"},
		{`{"query_id":1,"reward":1e999}`, "reward is too large for a double"},
		{`{"query_id":1,"label":NaN}`, "the body is not JSON: invalid value, at byte 22, as JSON has neither NaN nor Infinity"},
		{`{"query_id":1,"label":Infinity}`, "the body is not JSON: invalid value, at byte 22, as JSON has neither NaN nor Infinity"},
		{`{"query_id":1,"label":[NaN]}`, "the body is not JSON: invalid value, at byte 23, as JSON has neither NaN nor Infinity"},
		{`{"query_id":1,"label":-1e999}`, "label is too large for a double"},
		{`{"query_id":1,"label":01}`, "the body is not JSON: a number must not begin with 0, at byte 23"},
		{"{\"query_id\":1,\"label\":\"\xff\"}", "the body is not JSON: invalid encoding in string: text must be UTF-8, at byte 23"},
		{`{"query_id":1,"label":1`, "the body is not JSON: missing a comma or } after an object member, at byte 23"},
		{`{"query_id":1,"label":1}{}`, "the body is not JSON: nothing may follow the object, at byte 24"},
		{`{"query_id":0,"label":1`, "the body is not JSON: missing a comma or } after an object member, at byte 23"},
		{`{"feedback_batch":[{"query_id":0},]}`, "the body is not JSON: invalid value, at byte 34"},
		{`{"feedback_batch":[{"query_id":1,"reward":1}}`, "the body is not JSON: missing a comma or ] after an array element, at byte 44"},
		{`[1`, "the body is not JSON: missing a comma or ] after an array element, at byte 2"},
	} {
		got, err := codec.DecodeUpdate([]byte(test.body), takes(serving.Doubles), maxBatch)
		if refusal, ok := errors.AsType[*codec.Error](err); !ok || refusal.Cause != test.detail {
			t.Errorf("%.80s:\n got %v\nwant %s", test.body, err, test.detail)
		}
		if !reflect.DeepEqual(got, codec.UpdateRequest{}) {
			t.Errorf("%.80s: returned %v beside the error", test.body, got)
		}
	}
}

func TestDepthOfFeedbackIsBounded(t *testing.T) {
	label := func(levels int) string {
		return `{"query_id":1,"label":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`
	}
	for _, test := range []struct {
		body string
		ok   bool
	}{
		{label(127), true},
		{label(128), false},
		{`{"feedback_batch":[` + label(125) + `]}`, true},
		{`{"feedback_batch":[` + label(126) + `]}`, false},
		{`{"query_id":1,"label":` + strings.Repeat("[", 1<<20), false},
		{`{"feedback_batch":` + strings.Repeat(`[{"feedback_batch":`, 1<<16), false},
	} {
		_, err := codec.DecodeUpdate([]byte(test.body), takes(serving.Doubles), maxBatch)
		if test.ok && err != nil || !test.ok && (err == nil || !strings.Contains(err.Error(), "nested deeper than 128 levels")) {
			t.Errorf("%.30s of %d bytes: %v", test.body, len(test.body), err)
		}
	}
}

// What is decoded must survive the body, which the HTTP server overwrites.
func TestFeedbackOwnsItsMemory(t *testing.T) {
	const body = `{"feedback_batch":[{"uid":"ann","context":"\u0061b","input":"plain","label":"a label that is long"},
		{"uid":12,"query_id":7,"label":[1,2, 3]},{"input":"esc\naped","reward":0.5}]}`
	overwritten := []byte(body)
	got, err := codec.DecodeUpdate(overwritten, takes(serving.Strings), maxBatch)
	require.NoError(t, err)
	want, _ := codec.DecodeUpdate([]byte(body), takes(serving.Strings), maxBatch)
	for i := range overwritten {
		overwritten[i] = 'X'
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("changed with the body to %+v", got)
	}
}

// A body must not make us take memory out of proportion to its length, beyond what
// the number of elements bounds.
func TestMemoryOfFeedback(t *testing.T) {
	for _, body := range []string{
		`{"query_id":1,"label":"` + strings.Repeat("x", 1<<20) + `"}`,
		`{"query_id":1,"label":[` + strings.Repeat("1,", 1<<19) + `1]}`,
		`{"feedback_batch":[` + strings.Repeat(`{},`, 1<<19) + `{}]}`,
		`{"feedback_batch":[{"query_id":1,"reward":1}` + strings.Repeat(`,{"query_id":1,"reward":1}`, 1<<15) + `]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = codec.DecodeUpdate([]byte(body), takes(serving.Doubles), 1000)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(6*len(body)+1<<20); got > limit {
			t.Errorf("%.40s...: %d bytes allocated for a body of %d", body, got, len(body))
		}
	}
}

func BenchmarkDecodeUpdate(b *testing.B) {
	for name, body := range map[string]string{
		"label":  `{"uid":0,"input":[0.44,1.2,-3.5,0.001,12,7.25,0.5,0.8444218515250481,3,2,1,0.1,9],"label":1.0}`,
		"reward": `{"query_id":4194304,"reward":0.5}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.DecodeUpdate([]byte(body), takes(serving.Doubles), maxBatch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
