package rpc

import (
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Status is how one input of a batch ended.
type Status uint8

const (
	StatusOK           Status = 0
	StatusModelError   Status = 1
	StatusBadInput     Status = 2
	StatusFull         Status = 3
	StatusLate         Status = 4
	StatusExpired      Status = 5
	StatusDraining     Status = 6
	StatusUnknownModel Status = 7
	StatusNoContainer  Status = 8
	StatusContainer    Status = 9
	StatusCancelled    Status = 10
	StatusDropped      Status = 11 // only to peers with FeatureStages

	lastStatus = StatusDropped
)

// Statuses is the number of statuses: they are 0 to Statuses - 1.
const Statuses = int(lastStatus) + 1

func (s Status) String() string {
	names := [...]string{"ok", "model_error", "bad_input", "full", "late", "expired", "draining", "unknown_model", "no_container", "container", "cancelled", "dropped"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Cause is what the status means to a query.
func (s Status) Cause() serving.Cause {
	switch s {
	case StatusOK:
		return serving.OK
	case StatusModelError:
		return serving.ModelError
	case StatusBadInput:
		return serving.BadInput
	case StatusFull:
		return serving.RefusedFull
	case StatusLate:
		return serving.RefusedLate
	case StatusExpired, StatusCancelled:
		return serving.MissedSLO
	case StatusDraining:
		return serving.Draining
	case StatusNoContainer, StatusUnknownModel:
		return serving.NoReplica
	case StatusDropped:
		return serving.Dropped
	}
	return serving.ContainerError
}

const answerLast = 1

const (
	answerConfidence = 1
	answerQualifiers = 2
	answerStages     = 3
)

// ReplyHead is the fixed part of a REPLY.
type ReplyHead struct {
	Batch   uint64
	Queue   int           // inputs waiting for the model at the sender
	Wait    time.Duration // what a new input would wait
	Service time.Duration // what the model took; 0: not known
	Count   int
}

// Answer is one entry of a REPLY. When parsed, its slices point into the frame.
type Answer struct {
	Index   uint32
	Status  Status
	More    bool   // another entry for this input will follow
	Message []byte // when the status is not OK
	Payload []byte // when it is; an encoded payload
	// Confidence and Qualifiers may stand beside an output.
	Confidence    float64
	HasConfidence bool
	Qualifiers    []byte // an encoded payload
	// Stages may stand beside any status: how the input fared at the stages that it was
	// at, as AppendStageTime encodes it and StageTimes reads it.
	Stages []byte
}

// AppendReplyHead appends the fixed part; Count entries must follow it.
func AppendReplyHead(b []byte, h ReplyHead) []byte {
	b = appendU64(b, h.Batch)
	b = appendU32(b, uint32(h.Queue))
	b = appendU32(b, Micros(h.Wait))
	b = appendU32(b, Micros(h.Service))
	return appendU32(b, uint32(h.Count))
}

// AppendAnswer appends one entry of a REPLY.
func AppendAnswer(b []byte, a *Answer) []byte {
	b, at := openSize(b)
	b = appendU32(b, a.Index)
	flags := uint8(answerLast)
	if a.More {
		flags = 0
	}
	b = append(b, uint8(a.Status), flags, 0, 0)
	if a.Status != StatusOK {
		message := clip(a.Message, 1<<16-1)
		b = append(appendU16(b, uint16(len(message))), message...)
	} else {
		b = a.appendOutput(b)
	}
	if len(a.Stages) > 0 {
		b = appendField(b, answerStages, a.Stages)
	}
	return closeSize(b, at)
}

// appendOutput appends the payload, and what stands beside it.
func (a *Answer) appendOutput(b []byte) []byte {
	b = append(b, a.Payload...)
	if a.HasConfidence {
		b = appendF64(appendU32(append(b, answerConfidence), 8), a.Confidence)
	}
	if len(a.Qualifiers) > 0 {
		b = appendField(b, answerQualifiers, a.Qualifiers)
	}
	return b
}

// Reply walks a REPLY frame: Next until it says false, then Err.
type Reply struct {
	ReplyHead
	End  bool
	read int
	c    cursor
}

// ParseReply reads the fixed part of a REPLY.
func ParseReply(f Frame) (Reply, error) {
	r := Reply{End: f.Flags&FlagEnd != 0, c: cursor{frame: "REPLY", b: f.Body}}
	r.Batch = r.c.u64("batch")
	r.Queue = int(r.c.u32("queue"))
	r.Wait = time.Duration(r.c.u32("wait")) * time.Microsecond
	r.Service = time.Duration(r.c.u32("service")) * time.Microsecond
	r.Count = r.c.count()
	return r, r.c.err
}

// Next reads the next entry into a, and says whether there was one.
func (r *Reply) Next(a *Answer) bool {
	if r.c.err != nil || r.read == r.Count {
		return false
	}
	r.read++
	e := r.c.sub("entry")
	*a = Answer{Index: e.u32("index"), Status: Status(e.u8("status"))}
	a.More = e.u8("flags")&answerLast == 0
	e.u16("reserved")
	switch {
	case a.Status > lastStatus:
		e.fail("status", "is unknown")
	case a.Status == StatusOK:
		a.Payload = e.skipPayload()
	default:
		a.Message = e.str16("message")
	}
	for e.more() {
		tag, value := e.field()
		if a.Status == StatusOK || tag == answerStages { // the others belong to an output
			a.setField(tag, &value)
		}
		e.err = value.err
	}
	r.c.err = e.err
	return r.c.err == nil
}

func (a *Answer) setField(tag uint8, value *cursor) {
	switch tag {
	case answerConfidence:
		a.Confidence, a.HasConfidence = value.f64("confidence"), true
	case answerQualifiers:
		a.Qualifiers = value.skipPayload()
	case answerStages:
		a.Stages = value.stageTimes()
	}
}

// Err is what stopped Next, or nil at the end of a sound frame.
func (r *Reply) Err() error {
	if r.c.err == nil && r.read == r.Count && r.c.left() > 0 {
		r.c.fail("entries", "are followed by more bytes")
	}
	return r.c.err
}

// Empty says whether an OK answer has no value: the end of parts that were not collected.
func (a *Answer) Empty() bool { return len(a.Payload) >= 2 && a.Payload[0] == 0 && a.Payload[1] == 0 }

// Output builds the output that an OK answer carries, in memory of its own. The
// error says, in words for the client, what the container did wrong.
func (a *Answer) Output() (*serving.Output, error) {
	values, err := ParsePayload(slices.Clone(a.Payload))
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, &ProtocolError{Frame: "REPLY", Field: "payload", Why: "has no value"}
	}
	out, err := serving.NewOutputs(values)
	if err != nil {
		return nil, err
	}
	if a.HasConfidence {
		confidence := a.Confidence
		out.Confidence = &confidence
	}
	if len(a.Qualifiers) > 0 {
		qualifiers, err := ParsePayload(slices.Clone(a.Qualifiers))
		if err != nil {
			return nil, err
		}
		out.Qualify(qualifiers)
	}
	return out, nil
}
