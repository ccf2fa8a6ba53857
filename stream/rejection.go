package stream

import (
	"fmt"
	"strings"
)

// Reason is why a record became a dead letter, a word. The set is closed for each kind of
// jobs, for metrics; the sentence for people travels beside it.
type Reason string

// The reasons of all kinds of jobs; handlers have more.
const (
	Unreadable     Reason = "unreadable"       // neither a protobuf message nor a JSON one
	NoID           Reason = "no_id"            // without a uuid
	DuplicateID    Reason = "repeated_id"      // another record had this id
	RecordTooLarge Reason = "record_too_large" // than the job takes
)

// Rejection is why a record gets no result. It is an error that only a corrected record
// avoids.
type Rejection struct {
	Reason Reason
	Text   string // bounded, for a header and a line of a log
}

const mostReason = 2 << 10 // bytes of a reason; it may quote what is wrong

// Rejected makes a rejection.
func Rejected(reason Reason, format string, args ...any) *Rejection {
	text := fmt.Sprintf(format, args...)
	if len(text) > mostReason {
		text = strings.ToValidUTF8(text[:mostReason], "") + "…"
	}
	return &Rejection{reason, text}
}

func (r *Rejection) Error() string { return r.Text }
