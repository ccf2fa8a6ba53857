package stream

import (
	"fmt"

	"github.com/topsail-serving/topsail/stream/internal/deadletter"
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
	DuplicateID                  // another record had this id
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
	HeaderReason    = deadletter.HeaderReason    // a sentence
	HeaderKind      = deadletter.HeaderKind      // the Reason, a word
	HeaderStream    = deadletter.HeaderStream    // where the record was
	HeaderPlace     = deadletter.HeaderPlace     // where in it
	HeaderJob       = deadletter.HeaderJob       // who says so
	HeaderTruncated = deadletter.HeaderTruncated // only with a value that was too large to keep: its length
)

// rejection is why a record gets no result.
type rejection struct {
	reason Reason
	text   string
}

func rejected(reason Reason, format string, args ...any) *rejection {
	return &rejection{reason, deadletter.Short(fmt.Sprintf(format, args...))}
}

func (p *rejection) why() deadletter.Why {
	return deadletter.Why{Kind: p.reason.String(), Text: p.text}
}
