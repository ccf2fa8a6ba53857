package stream

import (
	"cmp"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Result is one of the messages that a record comes to.
type Result struct {
	Outcome     string     // what it is, a word; of a dead letter none
	Rejection   *Rejection // why it is a dead letter; nil: it is none
	Drop        bool       // there is no message
	Value       []byte
	Stream      string // empty: that of the job
	ContentType string // empty: that of the record's format
	Headers     []serving.StreamHeader

	length int // of a dead letter
}

// append appends the message of the result, if there is one.
func (r *Result) append(all []serving.StreamMessage, it *Item, j *Job) []serving.StreamMessage {
	switch {
	case r.Rejection != nil:
		return append(all, j.deadLetters.message(it.Record, r))
	case r.Drop:
		return all
	}
	contentType := cmp.Or(r.ContentType, it.format.ContentType())
	return append(all, serving.StreamMessage{
		Stream: cmp.Or(r.Stream, j.cfg.Output), Key: it.Record.Key, Value: r.Value,
		Headers: append([]serving.StreamHeader{{Name: HeaderContentType, Value: []byte(contentType)}}, r.Headers...),
	})
}

// shorten makes a result that the broker finds too large a dead letter, and one of these
// shorter, if that can be.
func (r *Result) shorten(k Kind, why error) bool {
	if r.Rejection == nil {
		r.Rejection = Rejected(k.TooLarge, "%s: %v", k.Said, why)
		return true
	}
	if r.length == len(kept)-1 {
		return false
	}
	r.length++
	return true
}

const (
	mostCarried      = 64      // headers
	mostCarriedBytes = 8 << 10 // of these, with their names
)

// Carried are the headers of a record that its result gets: all but those that say how the record is written
// and Topsail's own, the trace context first, as far as there is room.
func Carried(headers []serving.StreamHeader) []serving.StreamHeader {
	var all []serving.StreamHeader
	left := mostCarriedBytes
	take := func(wanted func(name string) bool) {
		for _, h := range headers {
			size := len(h.Name) + len(h.Value)
			if !wanted(h.Name) || len(all) == mostCarried || size > left {
				continue
			}
			left -= size
			all = append(all, h)
		}
	}
	take(isTrace)
	take(func(name string) bool {
		return !isTrace(name) && !strings.EqualFold(name, HeaderContentType) && !strings.HasPrefix(strings.ToLower(name), ours)
	})
	return all
}

// isTrace says whether a header is of W3C's trace context.
func isTrace(name string) bool {
	return strings.EqualFold(name, "traceparent") || strings.EqualFold(name, "tracestate")
}
