package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// FuzzDecodeUpdate holds the decoder to one made of encoding/json: they accept the
// same bodies and find the same in them.
func FuzzDecodeUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"uid":0,"input":[1.5,-2e3],"label":1.0}`, `{"input":"a\u00e4","label":"cat"}`, `{"input":"QQ","label":[1, {"a":null}]}`,
		`{"query_id":7,"reward":0.5,"context":"x"}`, `{"query_id":9007199254740992,"reward":2}`, `{"query_id":1,"label":1e999}`,
		`{"feedback_batch":[{"query_id":1,"reward":1},{"input":[1],"label":false,"label":null}]}`, `{"feedback_batch":[],"uid":1}`,
		`{"feedback_batch":[{"feedback_batch":1,"query_id":1,"reward":1e-400}]}`, `{"label":null}`, `[]`, ``, `{"a":1`,
	} {
		for t := serving.Bytes; t <= serving.Strings; t++ {
			f.Add([]byte(seed), uint8(t))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, inputType uint8) {
		it := serving.Bytes + serving.InputType(inputType%5)
		got, err := codec.DecodeUpdate(body, takes(it), maxBatch)
		want, wantErr := slowUpdate(body, it)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q as %v: got error %v, want %v", body, it, err, wantErr)
		}
		if refusal, typed := errors.AsType[*codec.Error](err); err != nil && (!typed || refusal.Cause == "") {
			t.Fatalf("%q: error %#v", body, err)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q as %v: got %+v, want %+v", body, it, got, want)
		}
	})
}

var feedbackKeys = []string{"uid", "context", "input", "query_id", "label", "reward", "feedback_id", "feedback_batch", "strict"}

// slowUpdate is the decoder as encoding/json would have it.
func slowUpdate(body []byte, t serving.InputType) (u codec.UpdateRequest, err error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if !json.Valid(body) || !utf8.Valid(body) || halfPair.Match(pair.ReplaceAll(body, nil)) || depth(body) > 128 {
		return u, errRefused
	}
	members, err := firstMembers(body)
	if err != nil {
		return u, err
	}
	lenient, err := slowLenient(members)
	if err != nil || !lenient && unknown(members, feedbackKeys...) {
		return u, errRefused
	}
	batch, isBatch := members["feedback_batch"]
	if !isBatch {
		f, err := slowFeedback(members, t)
		return codec.UpdateRequest{Feedback: []serving.Feedback{f}}, err
	}
	for _, key := range []string{"uid", "context", "input", "query_id", "feedback_id", "label", "reward"} {
		if members[key] != nil {
			return u, errRefused
		}
	}
	var elements []json.RawMessage
	if batch[0] != '[' || json.Unmarshal(batch, &elements) != nil || len(elements) > maxBatch {
		return u, errRefused
	}
	u = codec.UpdateRequest{Feedback: []serving.Feedback{}, Batch: true}
	for _, element := range elements {
		members, err := firstMembers(element)
		if err != nil {
			return u, err
		}
		if !lenient && unknown(members, feedbackKeys...) {
			return u, errRefused
		}
		f, err := slowFeedback(members, t)
		if err != nil {
			return u, err
		}
		u.Feedback = append(u.Feedback, f)
	}
	return u, nil
}

func slowFeedback(members map[string]json.RawMessage, t serving.InputType) (f serving.Feedback, err error) {
	var errs [7]error
	f.ID, errs[6] = slowName(members["feedback_id"], true)
	f.User, errs[0] = slowName(members["uid"], true)
	f.Context, errs[1] = slowName(members["context"], true)
	input, id, label, reward := members["input"], members["query_id"], members["label"], members["reward"]
	if input == nil && id == nil || (label == nil) == (reward == nil) {
		return f, errRefused
	}
	if input != nil {
		f.Input, errs[2] = slowInput(input, t)
	}
	if id != nil {
		var n uint64
		n, errs[3] = strconv.ParseUint(string(id), 10, 53)
		if f.QueryID = int64(n); n == 0 {
			return f, errRefused
		}
	}
	if label != nil {
		f.Label, errs[4] = slowLabel(label)
	}
	if reward != nil {
		f.Reward, errs[5] = slowReward(reward)
	}
	return f, errors.Join(errs[:]...)
}

func slowLabel(raw json.RawMessage) (*serving.Output, error) {
	var value any
	if json.Unmarshal(raw, &value); value == nil { // null, or a number of too many digits
		return nil, errRefused
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, raw)
	return &serving.Output{Value: serving.Value{DType: serving.JSON, Data: raw}, JSON: compact.Bytes()}, err
}

func slowReward(raw json.RawMessage) (*float64, error) {
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return nil, errRefused
	}
	return &x, nil
}
