package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// decoded are the golden frames of the kinds that have a decoder of their own.
func decoded(t testing.TB) []golden {
	list := readGolden(t)
	return slices.DeleteFunc(list, func(g golden) bool {
		kind := g.frame(t).Kind
		return kind >= KindMemory && kind <= KindFree || kind == KindPing || kind == KindPong || kind == KindDrain || kind.Optional() && kind != KindMetrics
	})
}

// checkRefusal makes sure that a decoder's error is the protocol's.
func checkRefusal(t *testing.T, f Frame, err error) {
	t.Helper()
	bad, ok := errors.AsType[*ProtocolError](err)
	switch {
	case !ok:
		t.Errorf("kind %d, body %x: error %v is not a *ProtocolError", f.Kind, f.Body, err)
	case bad.Frame == "" || bad.Field == "" || bad.Why == "":
		t.Errorf("kind %d, body %x: error %#v does not say what is wrong", f.Kind, f.Body, bad)
	case bad.Offset < 0 || bad.Offset > len(f.Body):
		t.Errorf("kind %d, body %x: error %v is not within the body", f.Kind, f.Body, err)
	}
}

// Only a HELLO ends with fields; every other body says how much of it there is.
func TestACutBodyIsRefused(t *testing.T) {
	sound := map[string][]int{"hello": {20, 27, 35}} // behind the fixed part and each field
	for _, g := range decoded(t) {
		whole := g.frame(t)
		for cut := range len(whole.Body) {
			f := whole
			f.Body = whole.Body[:cut:cut]
			_, err := decode(f)
			if slices.Contains(sound[g.name], cut) {
				if err != nil {
					t.Errorf("%s cut to %d bytes, between fields: %v", g.name, cut, err)
				}
				continue
			}
			checkRefusal(t, f, err)
		}
	}
}

// lastEntry finds the last entry of a body: where its u32 size stands.
func lastEntry(f Frame) (at int, ok bool) {
	start, ok := map[Kind]int{KindAnnounce: 4, KindPredict: 16, KindReply: 24, KindFeedback: 8, KindLoad: 4, KindMetrics: 4}[f.Kind]
	for at = start; ok && at < len(f.Body); {
		next := at + 4 + int(binary.LittleEndian.Uint32(f.Body[at:]))
		if next == len(f.Body) {
			return at, true
		}
		at = next
	}
	return 0, false
}

// An entry that is cut together with its size must be refused as well, unless the
// cut is between two fields.
func TestACutEntryIsRefused(t *testing.T) {
	sound := map[string][]int{ // sizes of the last entry without some of its fields
		"predict several inputs":               {26, 34, 65, 78, 91},
		"predict of a newer peer":              {15, 23},
		"predict of an app":                    {16},
		"reply with confidence and qualifiers": {25, 38},
		"reply with stages":                    {12},
		"announce of a host":                   {19},
		"announce of a concurrent container":   {20},
		"load":                                 {14, 28, 38},
		"load by its address":                  {14, 28},
		"feedback":                             {35, 43},
		"metrics counter":                      {24},
	}
	for _, g := range decoded(t) {
		whole := g.frame(t)
		at, ok := lastEntry(whole)
		if !ok {
			continue
		}
		for size := range len(whole.Body) - at - 4 {
			f := whole
			f.Body = bytes.Clone(whole.Body[:at+4+size])
			binary.LittleEndian.PutUint32(f.Body[at:], uint32(size))
			_, err := decode(f)
			if slices.Contains(sound[g.name], size) {
				if err != nil {
					t.Errorf("%s, last entry cut to %d bytes, between fields: %v", g.name, size, err)
				}
				continue
			}
			checkRefusal(t, f, err)
		}
	}
}

// An entry must not reach beyond its frame, nor its parts beyond the entry, even
// where the next entry has bytes to take.
func TestAnEntryKeepsToItself(t *testing.T) {
	for _, g := range decoded(t) {
		whole := g.frame(t)
		at, ok := lastEntry(whole)
		if !ok {
			continue
		}
		for _, size := range []uint32{uint32(len(whole.Body) - at - 3), 1 << 20, 1 << 31, 1<<32 - 1} {
			f := whole
			f.Body = bytes.Clone(whole.Body)
			binary.LittleEndian.PutUint32(f.Body[at:], size)
			_, err := decode(f)
			checkRefusal(t, f, err)
		}
	}
	body := encode(newPredict(1, 1, newInput(Ask{}, text("abc")), newInput(Ask{}, text("def")))).Body
	binary.LittleEndian.PutUint32(body[16:], 16) // the first entry has 17 bytes
	f := Frame{Kind: KindPredict, Body: body}
	_, err := decode(f)
	checkRefusal(t, f, err)
}

func TestChangedBytesNeverPanic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []Frame
	for _, g := range decoded(t) {
		list = append(list, g.frame(t))
	}
	for _, whole := range list {
		for at := range whole.Body { // every byte once, to every extreme
			for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff, whole.Body[at] + 1} {
				tryBody(t, whole, func(body []byte) []byte { body[at] = b; return body })
			}
		}
	}
	for range 20_000 { // and several at random
		whole, other := list[rng.IntN(len(list))], list[rng.IntN(len(list))]
		tryBody(t, whole, func(body []byte) []byte {
			for range 1 + rng.IntN(4) {
				body[rng.IntN(len(body))] = byte(rng.Uint32())
			}
			if rng.IntN(4) == 0 {
				body = append(body[:rng.IntN(len(body))], other.Body[rng.IntN(len(other.Body)):]...)
			}
			return body
		})
	}
}

func tryBody(t *testing.T, f Frame, change func([]byte) []byte) {
	t.Helper()
	f.Body = change(bytes.Clone(f.Body))
	if _, err := decode(f); err != nil {
		checkRefusal(t, f, err)
	}
}

// What was read must not be lost when the stream ends within a frame, and the end
// between two frames is another end than that.
func TestACutStreamEnds(t *testing.T) {
	for _, g := range readGolden(t) {
		for cut := range len(g.bytes) {
			_, err := newReader(iotest.OneByteReader(bytes.NewReader(g.bytes[:cut])), MaxFrame, true).next()
			want := io.ErrUnexpectedEOF
			if cut == 0 {
				want = io.EOF
			}
			if !errors.Is(err, want) {
				t.Errorf("%s cut to %d bytes: %v, want %v", g.name, cut, err, want)
			}
		}
	}
}

// What follows the last entry of a batch means that its count is wrong. The other
// bodies leave room for what a newer peer adds.
func TestBytesBehindTheEnd(t *testing.T) {
	for _, g := range decoded(t) {
		f := g.frame(t)
		if f.Kind == KindHello {
			continue // takes fields only
		}
		f.Body = append(bytes.Clone(f.Body), 1, 2, 3)
		_, err := decode(f)
		if f.Kind == KindPredict || f.Kind == KindReply {
			checkRefusal(t, f, err)
		} else if err != nil {
			t.Errorf("%s with more bytes: %v", g.name, err)
		}
	}
}

func TestAFieldOfAnotherSizeIsRefused(t *testing.T) {
	predict := encode(newPredict(1, 1, newInput(Ask{}, text("x")))).Body
	for tag, size := range map[uint8]int{predictTrace: TraceSize, predictQueryID: 8, predictBits: 8, predictAge: 4, predictApp: 4} {
		for _, n := range []int{0, size - 1} {
			f := Frame{Kind: KindPredict, Body: withField(predict, 16, tag, make([]byte, n))}
			_, err := decode(f)
			checkRefusal(t, f, err)
		}
	}
	output := newOutput(Answer{}, text("x"))
	reply := encode(newReply(ReplyHead{}, true, output)).Body
	label := encode(feedback{List: []Feedback{{Input: output.Payload, Label: output.Payload}}}).Body
	for _, f := range []Frame{
		{Kind: KindPredict, Body: withField(predict, 16, predictTrace, make([]byte, TraceSize+1))},
		{Kind: KindReply, Body: withField(reply, 24, answerConfidence, make([]byte, 7))},
		{Kind: KindReply, Body: withField(reply, 24, answerQualifiers, []byte{1, 0, 0})},
		{Kind: KindReply, Body: withField(reply, 24, answerStages, []byte{1, 'a', 0, 0, 0, 0})},
		{Kind: KindReply, Body: withField(reply, 24, answerStages, []byte{1, 'a', 0, 0, 0, 0, 0, 2})},
		{Kind: KindFeedback, Body: withField(label, 8, feedbackQueryID, make([]byte, 7))},
	} {
		_, err := decode(f)
		checkRefusal(t, f, err)
	}
}

// withField adds a field to the last entry, whose size stands at at.
func withField(body []byte, at int, tag uint8, value []byte) []byte {
	return closeSize(appendField(bytes.Clone(body), tag, value), at)
}

// The fields of an answer belong to an output; those of a failure are not known yet.
func TestFieldsOfAFailureAreSkipped(t *testing.T) {
	b, at := openSize(AppendReplyHead(nil, ReplyHead{Batch: 1, Count: 1}))
	b = appendU16(append(appendU32(b, 0), byte(StatusFull), answerLast, 0, 0), 0)
	b = appendField(appendField(b, answerConfidence, []byte{1}), answerQualifiers, []byte{2})
	v, err := decode(Frame{Kind: KindReply, Body: closeSize(b, at)})
	require.NoError(t, err)
	if a := v.(reply).Answers[0]; a.HasConfidence || a.Qualifiers != nil {
		t.Errorf("a failure has confidence %v and qualifiers %x", a.Confidence, a.Qualifiers)
	}
}

func TestEmptyValuesKeepTheirRows(t *testing.T) {
	want := serving.Value{DType: serving.Float64, Shape: []int{2, 0, 1 << 30}, Data: []byte{}}
	a := newOutput(Answer{}, want)
	out, err := a.Output()
	if err != nil || string(out.JSON) != "[[],[]]" {
		t.Errorf("output %+v, %v; want two empty rows", out, err)
	}
}

// Numbers that mean nothing, and values that their numbers do not allow.
func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	announced := func(change func(*Announcement)) Frame {
		a := Announcement{State: StateReady, Model: serving.ModelID{Model: "m", Version: "1"}}
		change(&a)
		return encode(announce{a})
	}
	valued := func(dtype serving.DType, dims byte, data ...byte) Frame {
		payload := append([]byte{1, 0, byte(dtype), dims, 0, 0}, data...)
		return encode(newPredict(1, 1, input{Ask: Ask{Payload: payload}}))
	}
	measured := func(kind MetricKind) Frame { return encode(metrics{{Kind: kind, Name: "m"}}) }
	for name, f := range map[string]Frame{
		"state":                   announced(func(a *Announcement) { a.State = StateDraining + 1 }),
		"input type":              announced(func(a *Announcement) { a.InputType = serving.Chat + 1 }),
		"input length":            announced(func(a *Announcement) { a.InputLength = MaxFrame + 1 }),
		"no model":                announced(func(a *Announcement) { a.Model.Model = "" }),
		"model's name":            announced(func(a *Announcement) { a.Model.Model = "../m" }),
		"version":                 announced(func(a *Announcement) { a.Model.Version = "1\n" }),
		"dtype 0":                 valued(0, 0, 0, 0, 0, 0),
		"int8 without data":       valued(serving.Int8, 0, 0, 0, 0, 0),
		"strings beyond the data": valued(serving.String, 1, 1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 'x'),
		"strings with a rest":     valued(serving.Blob, 1, 0, 0, 0, 0, 1, 0, 0, 0, 'x'),
		"JSON with dimensions":    valued(serving.JSON, 1, 1, 0, 0, 0, 1, 0, 0, 0, '1'),
		"dtype 15":                valued(15, 0, 0, 0, 0, 0),
		"dtype 19":                valued(19, 0, 0, 0, 0, 0),
		"string with dimensions":  valued(serving.String, 1, 1, 0, 0, 0, 1, 0, 0, 0, 'x'),
		"scalar without data":     valued(serving.Float64, 0, 0, 0, 0, 0),
		"vector of a half":        valued(serving.Int32, 1, 1, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3),
		"status":                  encode(newReply(ReplyHead{}, true, answer{Answer: Answer{Status: lastStatus + 1}})),
		"metric kind 0":           measured(0),
		"metric kind 4":           measured(4),
	} {
		if _, err := decode(f); err == nil {
			t.Errorf("%s: was taken", name)
		} else {
			checkRefusal(t, f, err)
		}
	}
	behind := append(AppendPayload(nil, text("x")), 0)
	if _, err := ParsePayload(behind); err == nil {
		t.Error("a payload with a byte behind it was taken")
	}
}
