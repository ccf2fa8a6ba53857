package stream

import (
	"fmt"
	"strconv"
	"strings"

	"topsail/serving"
)

// Reason is why a record became a dead letter. The set is closed, for metrics; the
// sentence for people travels beside it.
type Reason uint8

const (
	Unreadable     Reason = iota // neither a protobuf message nor a JSON one
	NoID                         // without a uuid
	UnknownApp                   // names an app that there is not, or that the job does not serve
	WrongInput                   // not what the app takes
	RecordTooLarge               // than the job takes
	RepeatedID                   // another record had this id
	GaveDefault                  // the answer was the default, and the job does not want those
	ResultTooLarge               // than the broker takes
)

var reasonNames = [...]string{"unreadable", "no_id", "unknown_app", "wrong_input", "record_too_large", "repeated_id", "default", "result_too_large"}

func (r Reason) String() string { return reasonNames[r] }

// reasons lists all of them.
func reasons() []Reason {
	all := make([]Reason, len(reasonNames))
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Headers of dead letters, beside those of the record itself.
const (
	HeaderReason    = "topsail-reason"    // a sentence
	HeaderKind      = "topsail-kind"      // the Reason, a word
	HeaderStream    = "topsail-stream"    // where the record was
	HeaderPlace     = "topsail-place"     // where in it
	HeaderJob       = "topsail-job"       // who says so
	HeaderTruncated = "topsail-truncated" // only with a value that was too large to keep: its length
)

// ours is what the headers begin with that a dead letter has of its own.
const ours = "topsail-"

// kept is how many bytes of a record a dead letter keeps: of its value, and of its key
// with its headers. The next ones are for when the broker has found that too large.
var kept = []struct{ value, other int }{{256 << 10, 16 << 10}, {1 << 10, 0}, {0, 0}}

// poison is why a record gets no result.
type poison struct {
	reason Reason
	text   string
}

func poisoned(reason Reason, format string, args ...any) *poison {
	return &poison{reason, fmt.Sprintf(format, args...)}
}

// deadLetter is a record that gets no result, as a message. try is the index in kept.
func deadLetter(job, to string, r *serving.StreamRecord, why *poison, try int) serving.StreamMessage {
	keep := kept[try]
	m := serving.StreamMessage{Stream: to, Value: r.Value[:min(len(r.Value), keep.value)]}
	if len(r.Key) <= keep.other {
		m.Key = r.Key
	}
	left := keep.other - len(m.Key)
	for _, h := range r.Headers {
		if left -= len(h.Name) + len(h.Value); left < 0 {
			break
		}
		if !strings.HasPrefix(h.Name, ours) || h.Name == HeaderApp { // it may have been a dead letter before
			m.Headers = append(m.Headers, h)
		}
	}
	header := func(name, value string) {
		m.Headers = append(m.Headers, serving.StreamHeader{Name: name, Value: []byte(value)})
	}
	header(HeaderReason, why.text)
	header(HeaderKind, why.reason.String())
	header(HeaderStream, r.Stream)
	header(HeaderPlace, r.Place)
	header(HeaderJob, job)
	if len(m.Value) < len(r.Value) {
		header(HeaderTruncated, strconv.Itoa(len(r.Value)))
	}
	return m
}
