package rpc

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// NoDeadline is the time left of an input that may take as long as it likes.
const NoDeadline = 0xFFFFFFFF

const (
	predictUser    = 1
	predictTrace   = 2
	predictQueryID = 3
	predictBits    = 4
	predictAge     = 5
	predictContext = 6
	predictApp     = 7
)

// AskParts is the feature bit of an Ask that wants its answer in parts: all entries before the
// last one.
const AskParts = 1

// TraceSize is the length of a trace context: trace id, span id, flags, zero.
const TraceSize = 26

// Ask is one input of a PREDICT. When parsed, its slices point into the frame.
type Ask struct {
	Budget  time.Duration // time left, rounded down to microseconds; < 0: no deadline
	Payload []byte        // an encoded payload
	Apart   bool          // when parsed: the payload is not in the frame, and may be kept
	User    []byte
	Trace   []byte // TraceSize bytes, or none
	QueryID uint64 // 0: none
	Bits    uint64 // feature bits
	Age     time.Duration
	Context []byte

	// Where it goes: see serving.Class. Without FeatureApps, or of an empty app, it is not told.
	App      []byte
	Weight   float32
	MinShare float32
	Priority uint8
}

// PredictHead is the fixed part of a PREDICT.
type PredictHead struct {
	Batch uint64
	Model uint32 // an announced id
	Count int
}

// AppendPredictHead appends the fixed part; Count entries must follow it.
func AppendPredictHead(b []byte, h PredictHead) []byte {
	b = appendU64(b, h.Batch)
	b = appendU32(b, h.Model)
	return appendU32(b, uint32(h.Count))
}

// AppendAsk appends one entry of a PREDICT.
func AppendAsk(b []byte, a *Ask) []byte {
	b, at := openSize(b)
	b = appendU32(b, budgetMicros(a.Budget))
	b = append(b, a.Payload...)
	return closeSize(a.appendFields(b), at)
}

// AppendAskInput appends one entry of a PREDICT with the payload of in, instead
// of a's.
func AppendAskInput(b []byte, a *Ask, in serving.Input) []byte {
	b, at := openSize(b)
	b = appendU32(b, budgetMicros(a.Budget))
	b = AppendInput(b, in)
	return closeSize(a.appendFields(b), at)
}

func (a *Ask) appendFields(b []byte) []byte {
	if len(a.User) > 0 {
		b = appendField(b, predictUser, a.User)
	}
	if len(a.Trace) == TraceSize {
		b = appendField(b, predictTrace, a.Trace)
	}
	if a.QueryID != 0 {
		b = appendU64(appendU32(append(b, predictQueryID), 8), a.QueryID)
	}
	if a.Bits != 0 {
		b = appendU64(appendU32(append(b, predictBits), 8), a.Bits)
	}
	if a.Age > 0 {
		b = appendU32(appendU32(append(b, predictAge), 4), Micros(a.Age))
	}
	if len(a.Context) > 0 {
		b = appendField(b, predictContext, a.Context)
	}
	if len(a.App) > 0 {
		b = appendU32(append(b, predictApp), uint32(9+len(a.App)))
		b = appendU32(appendU32(b, math.Float32bits(a.Weight)), math.Float32bits(a.MinShare))
		b = append(append(b, a.Priority), a.App...)
	}
	return b
}

func budgetMicros(d time.Duration) uint32 {
	if d < 0 {
		return NoDeadline
	}
	return Micros(d)
}

// Micros is d in whole microseconds, between 0 and the largest below NoDeadline.
func Micros(d time.Duration) uint32 {
	return uint32(min(max(d.Microseconds(), 0), NoDeadline-1))
}

// Predict walks a PREDICT frame: Next until it says false, then Err.
type Predict struct {
	PredictHead
	read  int
	c     cursor
	apart []apart // payloads that have not been read
	at    int     // where the body begins, where those say where they belong
}

// ParsePredict reads the fixed part of a PREDICT.
func ParsePredict(f Frame) (Predict, error) {
	p := Predict{c: cursor{frame: "PREDICT", b: f.Body}, apart: f.apart, at: f.at}
	p.Batch = p.c.u64("batch")
	p.Model = p.c.u32("model")
	count := p.c.u32("count")
	if p.c.err == nil && (count == 0 || count > MaxBatch) {
		p.c.fail("count", "is not between 1 and 65536")
	}
	p.Count = int(count)
	return p, p.c.err
}

// Next reads the next entry into a, and says whether there was one.
func (p *Predict) Next(a *Ask) bool {
	if p.c.err != nil || p.read == p.Count {
		return false
	}
	p.read++
	payload := p.payload()
	e := p.c.subLess("entry", len(payload))
	*a = Ask{Budget: -1}
	if budget := e.u32("time left"); budget != NoDeadline {
		a.Budget = time.Duration(budget) * time.Microsecond
	}
	if payload == nil {
		a.Payload = e.skipPayload()
	} else {
		a.Payload, a.Apart = payload, true
	}
	for e.more() {
		tag, value := e.field()
		a.setField(tag, &value)
		e.err = value.err
	}
	p.c.err = e.err
	return p.c.err == nil
}

// payload is that of the next entry, if it is not in the frame. Then it is this process that made it.
func (p *Predict) payload() []byte {
	if len(p.apart) == 0 || p.apart[0].at != p.at+p.c.off+beforePayload {
		return nil
	}
	data := p.apart[0].data
	p.apart = p.apart[1:]
	return data
}

// beforePayload is what an entry has before its payload: the size and the time left.
const beforePayload = 8

func (a *Ask) setField(tag uint8, value *cursor) {
	switch tag {
	case predictUser:
		a.User = value.rest()
	case predictTrace:
		if value.left() != TraceSize {
			value.fail("trace context", "is not 26 bytes long")
		}
		a.Trace = value.rest()
	case predictQueryID:
		a.QueryID = value.u64("query id")
	case predictBits:
		a.Bits = value.u64("feature bits")
	case predictAge:
		a.Age = time.Duration(value.u32("age")) * time.Microsecond
	case predictContext:
		a.Context = value.rest()
	case predictApp:
		a.Weight = math.Float32frombits(value.u32("weight"))
		a.MinShare = math.Float32frombits(value.u32("minimum share"))
		a.Priority = value.u8("priority")
		a.App = value.rest()
	}
}

// Err is what stopped Next, or nil at the end of a sound frame.
func (p *Predict) Err() error {
	if p.c.err == nil && p.read == p.Count && p.c.left() > 0 {
		p.c.fail("entries", "are followed by more bytes")
	}
	return p.c.err
}
