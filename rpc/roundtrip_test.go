package rpc

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Generators of everything that can be sent. They draw nil where a decoder gives
// nil, so that values can be compared whole.

func shortText() *rapid.Generator[string] { return rapid.StringN(0, 8, 64) }

func someBytes() *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), 1, 40) }

func micros() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Uint32Max(NoDeadline-1).Draw(t, "micros")) * time.Microsecond
	})
}

func hellos() *rapid.Generator[Hello] {
	return rapid.Custom(func(t *rapid.T) Hello {
		h := Hello{
			Minor: rapid.Byte().Draw(t, "minor"), Role: Role(rapid.Byte().Draw(t, "role")),
			Features: Features(rapid.Uint64().Draw(t, "features")), MaxFrame: rapid.Uint32Min(MinMaxFrame).Draw(t, "max frame"),
			Name: shortText().Draw(t, "name"), Software: shortText().Draw(t, "software"),
		}
		if rapid.Bool().Draw(t, "has token") {
			h.Token = someBytes().Draw(t, "token")
		}
		return h
	})
}

func announcements() *rapid.Generator[Announcement] {
	return rapid.Custom(func(t *rapid.T) Announcement {
		return Announcement{
			ID: rapid.Uint32().Draw(t, "id"), State: State(rapid.ByteMax(byte(StateDraining)).Draw(t, "state")),
			InputType:   serving.InputType(rapid.ByteMax(byte(serving.Strings)).Draw(t, "input type")),
			InputLength: rapid.IntRange(0, MaxFrame).Draw(t, "input length"),
			Model: serving.ModelID{
				Model:   rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,9}[a-z0-9])?`).Draw(t, "model"),
				Version: rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._+-]{0,9}`).Draw(t, "version"),
			},
			Stage:  shortText().Draw(t, "stage"),
			Reason: shortText().Draw(t, "reason"), Memory: rapid.Uint64().Draw(t, "memory"), Concurrency: rapid.Uint32().Draw(t, "concurrency"),
		}
	})
}

func loads() *rapid.Generator[Load] {
	return rapid.Custom(func(t *rapid.T) Load {
		a := announcements().Draw(t, "version")
		l := Load{
			InputType: a.InputType, InputLength: a.InputLength, Model: a.Model, Bundle: shortText().Draw(t, "bundle"),
			URL: shortText().Draw(t, "url"), Folder: shortText().Draw(t, "folder"),
		}
		if rapid.Bool().Draw(t, "has batch") {
			l.Batch = []byte(`{"strategy":"fixed"}`)
		}
		return l
	})
}

func values() *rapid.Generator[serving.Value] {
	dtypes := []serving.DType{
		serving.Uint8, serving.Int32, serving.Int64, serving.Float32, serving.Float64, serving.Bool,
		serving.String, serving.JSON, serving.Opaque,
	}
	return rapid.Custom(func(t *rapid.T) serving.Value {
		v := serving.Value{Name: shortText().Draw(t, "name"), DType: rapid.SampledFrom(dtypes).Draw(t, "dtype")}
		size := v.DType.Size()
		if size == 0 {
			v.Data = rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "data")
			return v
		}
		for range rapid.IntRange(0, maxDims).Draw(t, "dimensions") {
			v.Shape = append(v.Shape, rapid.IntRange(0, 3).Draw(t, "dimension"))
			size *= v.Shape[len(v.Shape)-1]
		}
		v.Data = make([]byte, size)
		for i := range v.Data {
			v.Data[i] = byte(i * 31)
		}
		return v
	})
}

func payloads() *rapid.Generator[[]serving.Value] { return rapid.SliceOfN(values(), 1, 3) }

func asks() *rapid.Generator[input] {
	return rapid.Custom(func(t *rapid.T) input {
		a := Ask{Budget: -1, QueryID: rapid.Uint64().Draw(t, "query id"), Bits: rapid.Uint64().Draw(t, "bits"), Age: micros().Draw(t, "age")}
		if rapid.Bool().Draw(t, "has deadline") {
			a.Budget = micros().Draw(t, "budget")
		}
		if rapid.Bool().Draw(t, "has user") {
			a.User = someBytes().Draw(t, "user")
		}
		if rapid.Bool().Draw(t, "has trace") {
			a.Trace = rapid.SliceOfN(rapid.Byte(), TraceSize, TraceSize).Draw(t, "trace")
		}
		if rapid.Bool().Draw(t, "has app") {
			a.App, a.Weight = someBytes().Draw(t, "app"), float32(rapid.Float64Range(0, 1000).Draw(t, "weight"))
			a.MinShare, a.Priority = float32(rapid.Float64Range(0, 1).Draw(t, "minimum share")), rapid.Uint8().Draw(t, "priority")
		}
		return newInput(a, payloads().Draw(t, "payload")...)
	})
}

func predicts() *rapid.Generator[predict] {
	return rapid.Custom(func(t *rapid.T) predict {
		return newPredict(rapid.Uint64().Draw(t, "batch"), rapid.Uint32().Draw(t, "model"), rapid.SliceOfN(asks(), 1, 4).Draw(t, "inputs")...)
	})
}

func answers() *rapid.Generator[answer] {
	return rapid.Custom(func(t *rapid.T) answer {
		a := Answer{
			Index: rapid.Uint32().Draw(t, "index"), More: rapid.Bool().Draw(t, "more"),
			Status: Status(rapid.ByteMax(byte(StatusCancelled)).Draw(t, "status")),
		}
		for range rapid.IntRange(0, 3).Draw(t, "stages") {
			a.Stages = AppendStageTime(a.Stages, StageTime{[]byte(rapid.StringN(0, 20, 255).Draw(t, "stage")), rapid.Bool().Draw(t, "ended"), micros().Draw(t, "took")})
		}
		if a.Status != StatusOK {
			a.Message = []byte(shortText().Draw(t, "message"))
			return answer{Answer: a}
		}
		if a.HasConfidence = rapid.Bool().Draw(t, "has confidence"); a.HasConfidence {
			a.Confidence = rapid.Float64().Draw(t, "confidence")
		}
		out := newOutput(a, payloads().Draw(t, "payload")...)
		if rapid.Bool().Draw(t, "has qualifiers") {
			out = out.qualified(payloads().Draw(t, "qualifiers")...)
		}
		return out
	})
}

func replies() *rapid.Generator[reply] {
	return rapid.Custom(func(t *rapid.T) reply {
		head := ReplyHead{
			Batch: rapid.Uint64().Draw(t, "batch"), Queue: rapid.IntRange(0, math.MaxInt32).Draw(t, "queue"),
			Wait: micros().Draw(t, "wait"), Service: micros().Draw(t, "service"),
		}
		return newReply(head, rapid.Bool().Draw(t, "end"), rapid.SliceOfN(answers(), 0, 4).Draw(t, "answers")...)
	})
}

func feedbacks() *rapid.Generator[feedback] {
	one := rapid.Custom(func(t *rapid.T) Feedback {
		v := Feedback{
			Input: AppendPayload(nil, payloads().Draw(t, "input")...), Label: AppendPayload(nil, payloads().Draw(t, "label")...),
			QueryID: rapid.Uint64().Draw(t, "query id"),
		}
		if rapid.Bool().Draw(t, "has user") {
			v.User = someBytes().Draw(t, "user")
		}
		return v
	})
	return rapid.Custom(func(t *rapid.T) feedback {
		return feedback{Model: rapid.Uint32().Draw(t, "model"), List: rapid.SliceOfN(one, 1, 4).Draw(t, "list")}
	})
}

func oneMetric() *rapid.Generator[Metric] {
	return rapid.Custom(func(t *rapid.T) Metric {
		m := Metric{
			Kind: MetricKind(rapid.ByteRange(1, 3).Draw(t, "kind")), Name: shortText().Draw(t, "name"), Help: shortText().Draw(t, "help"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "labels") {
			m.Labels = append(m.Labels, Label{Key: shortText().Draw(t, "key"), Value: shortText().Draw(t, "value")})
		}
		if m.Kind != MetricHistogram {
			m.Value = rapid.Float64().Draw(t, "value")
			return m
		}
		m.Count, m.Sum = rapid.Uint64().Draw(t, "count"), rapid.Float64().Draw(t, "sum")
		for range rapid.IntRange(0, 3).Draw(t, "buckets") {
			m.Buckets = append(m.Buckets, Bucket{Upper: rapid.Float64().Draw(t, "bound"), Count: rapid.Uint64().Draw(t, "count")})
		}
		return m
	})
}

// frames draws a frame of any kind that has a decoder, as its value.
func frames() *rapid.Generator[any] {
	return rapid.OneOf(
		hellos().AsAny(), predicts().AsAny(), replies().AsAny(), feedbacks().AsAny(),
		rapid.Map(rapid.SliceOfN(loads(), 1, 3), func(l []Load) any { return load(l) }),
		rapid.Map(rapid.Uint32(), func(id uint32) any { return unload(id) }),
		rapid.Map(rapid.SliceOfN(announcements(), 1, 4), func(l []Announcement) any { return announce(l) }),
		rapid.Map(rapid.SliceOfN(oneMetric(), 1, 4), func(l []Metric) any { return metrics(l) }),
		rapid.Map(rapid.StringN(0, 50, maxReason), func(s string) any { return bye(s) }),
		rapid.Custom(func(t *rapid.T) any {
			return Cancel{Batch: rapid.Uint64().Draw(t, "batch"), Index: rapid.Uint32().Draw(t, "index")}
		}),
	)
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := frames().Draw(t, "frame")
		got, err := decode(encode(want))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded\n%+v, want\n%+v", got, want)
		}
	})
}

func TestPayloadsAreDecodedAsTheyWereEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := payloads().Draw(t, "values")
		got, err := ParsePayload(AppendPayload(nil, want...))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded\n%+v (%v), want\n%+v", got, err, want)
		}
	})
}

func TestAPayloadHoldsAsManyValuesAsItsCountCanSay(t *testing.T) {
	many := make([]serving.Value, math.MaxUint16)
	for i := range many {
		many[i] = text("x")
	}
	got, err := ParsePayload(AppendPayload(nil, many...))
	if err != nil || len(got) != len(many) {
		t.Errorf("got %d values, %v; want %d", len(got), err, len(many))
	}
}

func TestAnInputTravelsAsItsValue(t *testing.T) {
	types := []serving.InputType{serving.Bytes, serving.Ints, serving.Floats, serving.Doubles, serving.Strings}
	rapid.Check(t, func(t *rapid.T) {
		in := serving.Input{Type: rapid.SampledFrom(types).Draw(t, "type")}
		in.Data = make([]byte, max(in.Type.DType().Size(), 1)*rapid.IntRange(0, 20).Draw(t, "length"))
		b := AppendInput(nil, in)
		if want := AppendPayload(nil, in.Value()); !bytes.Equal(b, want) {
			t.Fatalf("AppendInput gives\n%x, AppendPayload\n%x", b, want)
		}
		if len(b) > inputHead+len(in.Data) {
			t.Fatalf("%d bytes, of which more than %d are the head", len(b), inputHead)
		}
		ask := asks().Draw(t, "ask")
		ask.Payload = b
		if one, other := AppendAsk(nil, &ask.Ask), AppendAskInput(nil, &ask.Ask, in); !bytes.Equal(one, other) {
			t.Fatalf("AppendAsk gives\n%x, AppendAskInput\n%x", one, other)
		}
	})
}

func TestMicrosStayWithinTheirBounds(t *testing.T) {
	for d, want := range map[time.Duration]uint32{
		-time.Hour: 0, -1: 0, 999: 0, 1999: 1, time.Second: 1_000_000, 1000 * time.Hour: NoDeadline - 1, math.MaxInt64: NoDeadline - 1,
	} {
		if got := Micros(d); got != want {
			t.Errorf("Micros(%v) = %d, want %d", d, got, want)
		}
	}
}

func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	for _, long := range []string{strings.Repeat("é", 1<<16), "x" + strings.Repeat("é", 1<<16), strings.Repeat("€", 1<<16), strings.Repeat("😀", 1<<16)} {
		v, err := decode(encode(newReply(ReplyHead{}, true, answer{Answer: Answer{Status: StatusModelError, Message: []byte(long)}})))
		require.NoError(t, err)
		message := string(v.(reply).Answers[0].Message)
		checkCut(t, "message", message, long, math.MaxUint16)
		reason, err := ParseBye(AppendBye(nil, long))
		require.NoError(t, err)
		checkCut(t, "reason", reason, long, maxReason)
		m, err := ParseMetrics(AppendMetrics(nil, Metric{Kind: MetricGauge, Name: long, Labels: []Label{{Key: long, Value: long}}}))
		require.NoError(t, err)
		checkCut(t, "metric", m[0].Name, long, math.MaxUint8)
		checkCut(t, "label key", m[0].Labels[0].Key, long, math.MaxUint8)
		checkCut(t, "label value", m[0].Labels[0].Value, long, math.MaxUint16)
	}
	if got := clip(strings.Repeat("\x80", 10), 5); got != strings.Repeat("\x80", 5) {
		t.Errorf("what is no UTF-8 is cut to %q", got)
	}
}

func checkCut(t *testing.T, what, got, long string, most int) {
	t.Helper()
	if !strings.HasPrefix(long, got) || !utf8.ValidString(got) || len(got) > most || len(got) <= most-utf8.UTFMax {
		t.Errorf("%s of %d bytes, valid %v, for one of %d bytes and a limit of %d", what, len(got), utf8.ValidString(got), len(long), most)
	}
}

// What a stage with several sources gets has all values of each, told apart by their names.
func TestJoinPayloads(t *testing.T) {
	named := func(name string, v serving.Value) serving.Value { v.Name = name; return v }
	query := AppendPayload(nil, named("image", serving.Number(1)), named("text", serving.Text("a")))
	joined, err := JoinPayloads([]string{"input", "words"}, [][]byte{query, AppendPayload(nil, serving.Text("b"))})
	require.NoError(t, err)
	values, err := ParsePayload(joined)
	if err != nil || len(values) != 3 {
		t.Fatalf("%v, %v", values, err)
	}
	for i, want := range []string{"input.image", "input.text", "words"} {
		if values[i].Name != want {
			t.Errorf("value %d is %q, want %q", i, values[i].Name, want)
		}
	}
	if string(values[2].Data) != "b" {
		t.Errorf("%+v", values[2])
	}
	for _, wrong := range [][]byte{{}, {0, 0}} {
		if joined, err := JoinPayloads([]string{"input"}, [][]byte{wrong}); err == nil {
			t.Errorf("%x became %x", wrong, joined)
		}
	}
}
