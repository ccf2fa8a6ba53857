// Package deadletter makes dead letters of records, and reads what is common to both.
package deadletter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Headers of dead letters, beside those of the record itself.
const (
	HeaderReason    = "topsail-reason"    // a sentence
	HeaderKind      = "topsail-kind"      // the same, a word
	HeaderStream    = "topsail-stream"    // where the record was
	HeaderPlace     = "topsail-place"     // where in it
	HeaderJob       = "topsail-job"       // who says so
	HeaderTruncated = "topsail-truncated" // only with a value that was too large to keep: its length
)

const (
	mostReason  = 2 << 10 // bytes of a reason; it may quote what is wrong
	headerCosts = 32      // bytes, beside its name and its value
)

// ours is what the headers begin with that a dead letter has of its own.
const ours = "topsail-"

// kept is how many bytes of a record a dead letter keeps by its Length: of its value, and of
// its key with its headers.
var kept = []struct{ value, other int }{{256 << 10, 16 << 10}, {1 << 10, 0}, {0, 0}}

// Length is how long a dead letter may be: as long as any, until the broker finds that too
// large.
type Length int

// Shorten takes the next shorter one, if there is one.
func (l *Length) Shorten() (shorter bool) {
	if shorter = int(*l) < len(kept)-1; shorter {
		*l++
	}
	return shorter
}

// Why is what is wrong with a record.
type Why struct {
	Kind string // a word
	Text string // a sentence, Short
}

// Writer makes the dead letters of a job.
type Writer struct {
	Job  string
	To   string   // stream
	Keep []string // headers of records with Topsail's own beginning that mean something to the job
}

// Letter is a record that gets no result, as a message.
func (w Writer) Message(r *serving.StreamRecord, why Why, length Length) serving.StreamMessage {
	keep := kept[length]
	m := serving.StreamMessage{Stream: w.To, Value: r.Value[:min(len(r.Value), keep.value)]}
	if len(r.Key) <= keep.other {
		m.Key = r.Key
	}
	left := keep.other - len(m.Key)
	for _, h := range r.Headers {
		if left -= len(h.Name) + len(h.Value) + headerCosts; left < 0 {
			break
		}
		if !strings.HasPrefix(h.Name, ours) || slices.Contains(w.Keep, h.Name) { // it may have been a dead letter before
			m.Headers = append(m.Headers, h)
		}
	}
	header := func(name, value string) {
		m.Headers = append(m.Headers, serving.StreamHeader{Name: name, Value: []byte(value)})
	}
	header(HeaderReason, why.Text)
	header(HeaderKind, why.Kind)
	header(HeaderStream, r.Stream)
	header(HeaderPlace, r.Place)
	header(HeaderJob, w.Job)
	if len(m.Value) < len(r.Value) {
		header(HeaderTruncated, strconv.Itoa(len(r.Value)))
	}
	return m
}

// Short is the beginning of a reason that is too long for a header or a line of a log.
func Short(reason string) string {
	if len(reason) <= mostReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:mostReason], "") + "…"
}

// Size is how many bytes a record has, with its key and headers.
func Size(r *serving.StreamRecord) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// Header is the last value of a header; empty where there is none.
func Header(r *serving.StreamRecord, name string) (value string) {
	for _, h := range r.Headers {
		if h.Name == name {
			value = string(h.Value)
		}
	}
	return value
}

// Place is where a record is, in all streams, as people write it.
func Place(r *serving.StreamRecord) string { return r.Stream + " " + r.Place }
