package rpc

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// golden is one frame of testdata/golden.txt.
type golden struct {
	name       string
	decodeOnly bool
	bytes      []byte // header and body
}

// frame reads the golden frame as it would come off a connection.
func (g golden) frame(t testing.TB) Frame {
	t.Helper()
	f, err := newReader(bytes.NewReader(g.bytes), MaxFrame, true).next()
	if err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	return f
}

func readGolden(t testing.TB) []golden {
	t.Helper()
	file, err := os.ReadFile("testdata/golden.txt")
	require.NoError(t, err)
	var list []golden
	for line := range strings.Lines(string(file)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.Join(strings.Fields(line), " ")
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, decodeOnly := strings.CutSuffix(strings.TrimSuffix(name, "]"), " (decode only)")
			list = append(list, golden{name: name, decodeOnly: decodeOnly})
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(b) > 0 {
			last := &list[len(list)-1]
			last.bytes = append(last.bytes, b...)
		}
	}
	return list
}

// goldenValues are what the golden frames mean.
func goldenValues() map[string]any {
	bools := serving.Value{Name: "mask", DType: serving.Bool, Shape: []int{2, 3}, Data: []byte{1, 0, 1, 0, 1, 0}}
	scalar := serving.Value{Name: "k", DType: serving.Int64, Data: appendU64(nil, 1<<64-1)}
	everything := Ask{
		Budget: 5 * time.Millisecond, User: []byte("ann"), QueryID: 0x0123456789abcdef, Bits: 1<<63 | 1<<2 | 1, Age: 1500 * time.Microsecond,
		Trace: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 1, 0},
	}
	return map[string]any{
		"hello":                Hello{Role: RoleGateway, Features: FeatureLZ4, MaxFrame: 64 << 20, Name: "gw", Token: []byte("tok"), Software: "s/1"},
		"hello without fields": Hello{Role: RoleContainer, MaxFrame: 65536},
		"announce": announce{
			{ID: 1, State: StateReady, InputType: serving.Doubles, InputLength: 13, Model: serving.ModelID{Model: "wine", Version: "1"}},
			{ID: 2, State: StateLoading, Model: serving.ModelID{Model: "a", Version: "2.0"}, Stage: "pre"},
			{ID: 3, State: StateGone},
		},
		"announce of a host": announce{
			{ID: 0, State: StateReady, Model: serving.ModelID{Model: "small", Version: "1"}, Memory: 32 << 20},
			{ID: 9, State: StateGone, Model: serving.ModelID{Model: "ann", Version: "2"}, Reason: "no model.pkl"},
		},
		"announce of a concurrent container": announce{
			{ID: 1, State: StateReady, InputType: serving.Strings, Model: serving.ModelID{Model: "chat", Version: "1"}, Concurrency: 8},
		},
		"load": load{{
			InputType: serving.Doubles, InputLength: 2, Model: serving.ModelID{Model: "ann", Version: "1"},
			Bundle: "sha256:00", Folder: "ab/cd", Batch: []byte(`{}`),
		}},
		"load by its address": load{{Model: serving.ModelID{Model: "ann", Version: "1"}, Bundle: "sha256:00", URL: "http://h/b"}},
		"unload":              unload(9),
		"memory":              offered{"/proc/7/fd/9", "/memfd:t (deleted)"},
		"shared":              shared{KindPredict, FlagEnd, 2, 600_000},
		"free":                free{0, 0, 0, 0, 3, 0, 0, 0},
		"predict doubles":     newPredict(7, 1, newInput(Ask{Budget: 25 * time.Millisecond}, doubles(1.5, -2))),
		"predict several inputs": newPredict(0x0102030405060708, 5,
			newInput(Ask{Budget: -1}, serving.Value{DType: serving.Uint8, Shape: []int{3}, Data: []byte{255, 0, 127}}),
			newInput(Ask{}, serving.Value{DType: serving.Float32, Shape: []int{1}, Data: appendU32(nil, 0x3f000000)}),
			newInput(everything, serving.Value{DType: serving.Int32, Shape: []int{2}, Data: appendU32(appendU32(nil, 1), 1<<32-2)})),
		"predict of an app":   newPredict(8, 1, newInput(Ask{Budget: -1, App: []byte("wine"), Weight: 2.5, MinShare: 0.125, Priority: 2}, text("hi"))),
		"predict string":      newPredict(8, 1, newInput(Ask{Budget: -1}, text("hé!"))),
		"predict bool tensor": newPredict(9, 2, newInput(Ask{Budget: time.Second}, bools, scalar)),
		"reply": newReply(ReplyHead{Batch: 7, Queue: 3, Wait: 4 * time.Millisecond, Service: 1500 * time.Microsecond}, false,
			newOutput(Answer{}, serving.Value{DType: serving.Float64, Data: appendF64(nil, 2.5)})),
		"reply with confidence and qualifiers": newReply(ReplyHead{Batch: 7}, true,
			newOutput(Answer{Confidence: 0.75, HasConfidence: true}, serving.Value{DType: serving.JSON, Data: []byte(`{"a":1}`)}).qualified(
				serving.Value{Name: "p", DType: serving.Float32, Shape: []int{2}, Data: appendU32(appendU32(nil, 0x3e800000), 0x3f400000)},
				serving.Value{Name: "n", DType: serving.String, Data: []byte("x")})),
		"reply error": newReply(ReplyHead{Batch: 7}, true,
			answer{Answer: Answer{Status: StatusModelError, Message: []byte("ValueError: no")}},
			answer{Answer: Answer{Index: 1, Status: StatusExpired, Message: []byte{}}}),
		"reply with stages": newReply(ReplyHead{Batch: 7}, false,
			newOutput(Answer{Stages: AppendStageTime(AppendStageTime(nil, StageTime{Name: []byte("Scale"), Took: 1500 * time.Microsecond}), StageTime{Name: []byte("Rank"), Took: 2 * time.Second})}, text("t")),
			answer{Answer: Answer{Index: 1, Status: StatusModelError, Message: []byte("no"), Stages: AppendStageTime(nil, StageTime{Name: []byte("Scale"), Ended: true, Took: time.Millisecond})}}),
		"reply end": newReply(ReplyHead{Batch: 7}, true),
		"reply streamed": newReply(ReplyHead{Batch: 10}, false,
			newOutput(Answer{Index: 2, More: true}, text("par")), newOutput(Answer{Index: 2}, text("t"))),
		"cancel one": Cancel{Batch: 7, Index: 1},
		"cancel all": Cancel{Batch: 7, Index: CancelAll},
		"ping":       ping(0x1122334455667788),
		"pong":       pong(0x1122334455667788),
		"drain":      drain{},
		"bye":        bye("stopped"),
		"feedback": feedback{Model: 1, List: []Feedback{
			{Input: AppendPayload(nil, text("x")), Label: AppendPayload(nil, serving.Value{DType: serving.Bool, Data: []byte{1}})},
			{Input: AppendPayload(nil, doubles(1.5)), Label: AppendPayload(nil, text("cat")), User: []byte("ann"), QueryID: 0x0123456789abcdef},
		}},
		"metrics counter":               metrics{{Kind: MetricCounter, Name: "hits", Help: "h", Labels: []Label{{Key: "kind", Value: "a"}}, Value: 3}},
		"metrics gauge":                 metrics{{Kind: MetricGauge, Name: "load", Value: -0.5}},
		"metrics histogram":             metrics{{Kind: MetricHistogram, Name: "lat", Count: 3, Sum: 3.5, Buckets: []Bucket{{1, 2}, {2, 3}}}},
		"predict compressed":            newPredict(7, 1, newInput(Ask{Budget: -1}, text(strings.Repeat("a", 100)))),
		"predict of a newer peer":       newPredict(1, 1, newInput(Ask{Budget: time.Millisecond, QueryID: 42}, text("x"))),
		"optional kind of a newer peer": nil,
	}
}

func TestGoldenFrames(t *testing.T) {
	values := goldenValues()
	for _, g := range readGolden(t) {
		want, ok := values[g.name]
		delete(values, g.name)
		t.Run(g.name, func(t *testing.T) {
			if !ok {
				t.Fatal("the test does not know what this frame means")
			}
			got, err := decode(g.frame(t))
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("decoded\n%+v, want\n%+v", got, want)
			}
			if g.decodeOnly {
				return
			}
			f := encode(want)
			if b := AppendFrame(nil, f.Kind, f.Flags, f.Body); !bytes.Equal(b, g.bytes) {
				t.Errorf("encoded\n%x, want\n%x", b, g.bytes)
			}
		})
	}
	for name := range values {
		t.Errorf("golden.txt has no frame %q", name)
	}
}

// An input of a query is encoded by another function than a payload, once, in the
// gateway; both must give the same bytes.
func TestGoldenInputs(t *testing.T) {
	inputs := map[string]serving.Input{
		"predict doubles": {Type: serving.Doubles, Data: doubles(1.5, -2).Data},
		"predict string":  {Type: serving.Strings, Data: []byte("hé!")},
	}
	for _, g := range readGolden(t) {
		in, ok := inputs[g.name]
		if !ok {
			continue
		}
		delete(inputs, g.name)
		p := goldenValues()[g.name].(predict)
		body := AppendAskInput(AppendPredictHead(nil, p.Head), &p.Inputs[0].Ask, in)
		if b := AppendFrame(nil, KindPredict, 0, body); !bytes.Equal(b, g.bytes) {
			t.Errorf("%s: encoded\n%x, want\n%x", g.name, b, g.bytes)
		}
	}
	if len(inputs) > 0 {
		t.Errorf("golden.txt lacks %v", inputs)
	}
}
