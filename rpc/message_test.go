package rpc

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// The tests speak of whole frames as values: a Hello, an announce, a predict, a
// reply, a Cancel, a ping, a pong, a drain, a bye, a feedback, a load, an unload or a
// metrics.
type (
	announce []Announcement
	predict  struct {
		Head   PredictHead
		Inputs []input
	}
	reply struct {
		Head    ReplyHead
		End     bool
		Answers []answer
	}
	ping    uint64
	pong    uint64
	drain   struct{}
	bye     string
	load    []Load
	unload  uint32
	offered struct{ path, link string }
	shared  struct {
		kind       Kind
		flags      Flags
		slot, size int
	}
	free     []byte
	feedback struct {
		Model uint32
		List  []Feedback
	}
	metrics []Metric
)

// input is an Ask and the values of its payload.
type input struct {
	Ask
	Values []serving.Value
}

// answer is an Answer and the values of its payloads.
type answer struct {
	Answer
	Values    []serving.Value
	Qualified []serving.Value
}

func newPredict(batch uint64, model uint32, inputs ...input) predict {
	return predict{Head: PredictHead{Batch: batch, Model: model, Count: len(inputs)}, Inputs: inputs}
}

func newInput(a Ask, values ...serving.Value) input {
	a.Payload = AppendPayload(nil, values...)
	return input{Ask: a, Values: values}
}

func newReply(head ReplyHead, end bool, answers ...answer) reply {
	head.Count = len(answers)
	return reply{Head: head, End: end, Answers: append([]answer(nil), answers...)} // nil when there are none
}

func newOutput(a Answer, values ...serving.Value) answer {
	a.Payload = AppendPayload(nil, values...)
	return answer{Answer: a, Values: values}
}

func (a answer) qualified(values ...serving.Value) answer {
	a.Qualifiers, a.Qualified = AppendPayload(nil, values...), values
	return a
}

func text(s string) serving.Value { return serving.Value{DType: serving.String, Data: []byte(s)} }

func doubles(numbers ...float64) serving.Value {
	v := serving.Value{DType: serving.Float64, Shape: []int{len(numbers)}, Data: []byte{}}
	for _, x := range numbers {
		v.Data = appendF64(v.Data, x)
	}
	return v
}

// encode gives the frame of a value.
func encode(v any) Frame {
	switch v := v.(type) {
	case Hello:
		return Frame{Kind: KindHello, Body: AppendHello(nil, v)}
	case announce:
		return Frame{Kind: KindAnnounce, Body: AppendAnnounce(nil, v...)}
	case predict:
		body := AppendPredictHead(nil, v.Head)
		for i := range v.Inputs {
			body = AppendAsk(body, &v.Inputs[i].Ask)
		}
		return Frame{Kind: KindPredict, Body: body}
	case reply:
		return encodeReply(v)
	case Cancel:
		return Frame{Kind: KindCancel, Body: AppendCancel(nil, v)}
	case ping:
		return Frame{Kind: KindPing, Body: appendU64(nil, uint64(v))}
	case pong:
		return Frame{Kind: KindPong, Body: appendU64(nil, uint64(v))}
	case drain:
		return Frame{Kind: KindDrain}
	case bye:
		return Frame{Kind: KindBye, Body: AppendBye(nil, string(v))}
	case offered:
		return Frame{Kind: KindMemory, Body: appendMemory(nil, v.path, v.link)}
	case shared:
		return Frame{Kind: KindShared, Body: appendShared(nil, v.kind, v.flags, v.slot, v.size)}
	case free:
		return Frame{Kind: KindFree, Body: v}
	case load:
		return Frame{Kind: KindLoad, Body: AppendLoad(nil, v...)}
	case unload:
		return Frame{Kind: KindUnload, Body: AppendUnload(nil, uint32(v))}
	case feedback:
		return Frame{Kind: KindFeedback, Body: AppendFeedback(nil, v.Model, v.List...)}
	case metrics:
		return Frame{Kind: KindMetrics, Body: AppendMetrics(nil, v...)}
	}
	panic(fmt.Sprintf("no frame for %T", v))
}

func encodeReply(v reply) Frame {
	f := Frame{Kind: KindReply, Body: AppendReplyHead(nil, v.Head)}
	for i := range v.Answers {
		f.Body = AppendAnswer(f.Body, &v.Answers[i].Answer)
	}
	if v.End {
		f.Flags = FlagEnd
	}
	return f
}

// decode gives the value of a frame, or nil for an optional kind.
func decode(f Frame) (any, error) {
	switch f.Kind {
	case KindHello:
		return ParseHello(f.Body)
	case KindAnnounce:
		v, err := ParseAnnounce(f.Body)
		return announce(v), err
	case KindPredict:
		return decodePredict(f)
	case KindReply:
		return decodeReply(f)
	case KindCancel:
		return ParseCancel(f.Body)
	case KindPing:
		return ping(binary.LittleEndian.Uint64(f.Body)), nil
	case KindPong:
		return pong(binary.LittleEndian.Uint64(f.Body)), nil
	case KindDrain:
		return drain{}, nil
	case KindBye:
		v, err := ParseBye(f.Body)
		return bye(v), err
	case KindFeedback:
		return decodeFeedback(f)
	case KindLoad:
		v, err := ParseLoad(f.Body)
		return load(v), err
	case KindMemory:
		c := cursor{frame: "MEMORY", b: f.Body}
		if c.u32("slots") != slots || c.u32("size") != slotSize {
			c.fail("slots", "are others")
		}
		return offered{string(c.str16("path")), string(c.str16("link"))}, c.err
	case KindShared:
		c := cursor{frame: "SHARED", b: f.Body}
		kind, flags := Kind(c.u8("kind")), Flags(c.u8("flags"))
		c.u16("reserved")
		return shared{kind, flags, int(c.u32("slot")), int(c.u32("size"))}, c.err
	case KindFree:
		return free(f.Body), nil
	case KindUnload:
		v, err := ParseUnload(f.Body)
		return unload(v), err
	case KindMetrics:
		v, err := ParseMetrics(f.Body)
		return metrics(v), err
	}
	return nil, Unexpected(f)
}

func decodePredict(f Frame) (any, error) {
	p, err := ParsePredict(f)
	if err != nil {
		return nil, err
	}
	v := predict{Head: p.PredictHead}
	var in input
	for p.Next(&in.Ask) {
		if in.Values, err = mustParse(in.Payload); err != nil {
			return nil, err
		}
		v.Inputs = append(v.Inputs, in)
	}
	return v, p.Err()
}

func decodeReply(f Frame) (any, error) {
	r, err := ParseReply(f)
	if err != nil {
		return nil, err
	}
	v := reply{Head: r.ReplyHead, End: r.End}
	for {
		var a answer
		if !r.Next(&a.Answer) {
			return v, r.Err()
		}
		if a.Status == StatusOK {
			_, _ = a.Output() // fails on what JSON cannot carry, but must not panic
			a.Values, err = mustParse(a.Payload)
		}
		if a.Qualifiers != nil && err == nil {
			a.Qualified, err = mustParse(a.Qualifiers)
		}
		if err != nil {
			return nil, err
		}
		v.Answers = append(v.Answers, a)
	}
}

func decodeFeedback(f Frame) (any, error) {
	var v feedback
	var err error
	if v.Model, v.List, err = ParseFeedback(f.Body); err != nil {
		return nil, err
	}
	for _, one := range v.List {
		if _, err := mustParse(slices.Clone(one.Input)); err != nil {
			return nil, err
		}
		if _, err := mustParse(slices.Clone(one.Label)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// mustParse parses a payload that a decoder found sound without building its
// values. Its error is none of the protocol's.
func mustParse(payload []byte) ([]serving.Value, error) {
	values, err := ParsePayload(payload)
	if err != nil {
		return nil, fmt.Errorf("a frame was taken although its payload is bad: %v", err)
	}
	return values, nil
}
