package stream

import (
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Headers of dead letters, beside those of the record itself.
const (
	HeaderReason    = "topsail-reason"    // a sentence
	HeaderKind      = "topsail-kind"      // the Reason, a word
	HeaderStream    = "topsail-stream"    // where the record was
	HeaderPlace     = "topsail-place"     // where in it
	HeaderJob       = "topsail-job"       // who says so
	HeaderTruncated = "topsail-truncated" // only with a value that was too large to keep: its length
)

const headerCosts = 32 // bytes, beside its name and its value

// ours is what the headers begin with that a dead letter has of its own.
const ours = "topsail-"

// kept is how many bytes of a record a dead letter keeps by its length: of its value, and of
// its key with its headers. It is as long as any, until the broker finds that too large.
var kept = []struct{ value, other int }{{256 << 10, 16 << 10}, {1 << 10, 0}, {0, 0}}

// deadLetters makes the dead letters of a job.
type deadLetters struct {
	job  string
	to   string   // stream
	keep []string // headers that begin as ours, and stay
}

// message is a record that gets no result, with the headers of that, which stand for the record's own.
func (d deadLetters) message(r *serving.StreamRecord, why *Result) serving.StreamMessage {
	keep := kept[why.length]
	m := serving.StreamMessage{Stream: d.to, Value: r.Value[:min(len(r.Value), keep.value)]}
	if len(r.Key) <= keep.other {
		m.Key = r.Key
	}
	left := keep.other - len(m.Key)
	for _, h := range why.Headers {
		left -= len(h.Name) + len(h.Value) + headerCosts
		m.Headers = append(m.Headers, h)
	}
	for _, h := range r.Headers {
		if slices.ContainsFunc(why.Headers, func(own serving.StreamHeader) bool { return own.Name == h.Name }) {
			continue
		}
		if left -= len(h.Name) + len(h.Value) + headerCosts; left < 0 {
			break
		}
		if !strings.HasPrefix(h.Name, ours) || slices.Contains(d.keep, h.Name) { // it may have been a dead letter before
			m.Headers = append(m.Headers, h)
		}
	}
	header := func(name, value string) {
		m.Headers = append(m.Headers, serving.StreamHeader{Name: name, Value: []byte(value)})
	}
	header(HeaderReason, why.Rejection.Text)
	header(HeaderKind, string(why.Rejection.Reason))
	header(HeaderStream, r.Stream)
	header(HeaderPlace, r.Place)
	header(HeaderJob, d.job)
	if len(m.Value) < len(r.Value) {
		header(HeaderTruncated, strconv.Itoa(len(r.Value)))
	}
	return m
}
