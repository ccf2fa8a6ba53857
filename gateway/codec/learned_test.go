package codec_test

import (
	"math"
	"testing"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

func TestAppendLearned(t *testing.T) {
	for _, test := range []struct {
		l    serving.Learned
		want string
	}{
		{serving.Learned{
			QueryID: 4194304, Joined: serving.FromRecord, Loss: 0.25, Forwarded: 2,
			Trained: []serving.StateScope{{User: "a\"nn", Context: "shoes"}, {User: "ann"}, {Context: "shoes"}, {}},
			Models:  []serving.LearnedModel{{ModelID: id("a", "1"), Loss: 1, Judged: true}, {ModelID: id("b", "2"), Judged: true}, {ModelID: id("c", "1"), Loss: 1}},
		}, `{"received":true,"query_id":4194304,"joined":"record","duplicate":false,"loss":0.25,` +
			`"trained":[{"user":"a\"nn","context":"shoes"},{"user":"ann"},{"context":"shoes"},{}],` +
			`"models":[{"model":"a:1","loss":1},{"model":"b:2","loss":0},{"model":"c:1"}],"forwarded":2}`},
		{serving.Learned{QueryID: 7, Joined: serving.FromRecord, Duplicate: true},
			`{"received":true,"query_id":7,"joined":"record","duplicate":true,"loss":0,"trained":[],"models":[],"forwarded":0}`},
		{serving.Learned{Joined: serving.FromModels, Loss: math.NaN(), Models: []serving.LearnedModel{{ModelID: id("a", "1"), Loss: math.Inf(1), Judged: true}}},
			`{"received":true,"joined":"models","duplicate":false,"loss":null,"trained":[],"models":[{"model":"a:1","loss":null}],"forwarded":0}`},
	} {
		if got := string(codec.AppendLearned([]byte("> "), &test.l)); got != "> "+test.want {
			t.Errorf("got  %s\nwant > %s", got, test.want)
		}
	}
}

func TestAppendLearnedBatch(t *testing.T) {
	const one = `{"received":true,"joined":"cache","duplicate":false,"loss":1,"trained":[{}],"models":[],"forwarded":0}`
	l := serving.Learned{Joined: serving.FromCache, Loss: 1, Trained: []serving.StateScope{{}}}
	for want, list := range map[string][]serving.Learned{
		`{"feedback":[]}`:                        {},
		`{"feedback":[` + one + `]}`:             {l},
		`{"feedback":[` + one + `,` + one + `]}`: {l, l},
	} {
		if got := string(codec.AppendLearnedBatch(nil, list)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
