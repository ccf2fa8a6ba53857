package stream

import (
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Directed is a Message that says more of its result than its value.
type Directed interface {
	Output() Output
}

// Output is where a result goes and what goes with it.
type Output struct {
	Drop        bool   // there is no result
	Stream      string // empty: that of the job
	ContentType string // empty: that of the message's format
	Headers     []serving.StreamHeader
}

// result is the message of an item that has a result, and whether there is one.
func (it *Item) result(j *Job) (m serving.StreamMessage, is bool) {
	m = serving.StreamMessage{Stream: j.cfg.Output, Key: it.Record.Key}
	contentType := it.format.ContentType()
	var headers []serving.StreamHeader
	if directed, says := it.Message.(Directed); says {
		out := directed.Output()
		if out.Drop {
			return m, false
		}
		if out.Stream != "" {
			m.Stream = out.Stream
		}
		if out.ContentType != "" {
			contentType = out.ContentType
		}
		headers = out.Headers
	}
	m.Value = it.Message.Result()
	m.Headers = append([]serving.StreamHeader{{Name: HeaderContentType, Value: []byte(contentType)}}, headers...)
	return m, true
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
