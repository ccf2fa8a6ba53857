package models

import (
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/stream/internal/deadletter"
)

// Reason is why an update became a dead letter. The set is closed, for metrics; the
// sentence for people travels beside it, in the headers that package stream names.
type Reason uint8

const (
	Unreadable      Reason = iota // neither a protobuf message nor a JSON one
	NoID                          // without a uuid
	DuplicateID                   // another update had this id
	RecordTooLarge                // than the job takes
	UnknownKind                   // of model
	Invalid                       // the descriptor is wrong in itself
	WrongChecksum                 // of the model
	LocationRefused               // not one that the job fetches from
	LocationAway                  // cannot be fetched
	ModelTooLarge                 // what is at the location, or in the archive
	Conflict                      // another version has this name
	Unknown                       // names an app or a model that there is not
	Refused                       // by the management API
	AnswerTooLarge                // the acknowledgement, for the broker
)

var reasonNames = [...]string{
	"unreadable", "no_id", "repeated_id", "record_too_large", "unknown_kind", "invalid", "wrong_checksum", "location_refused", "location_away",
	"model_too_large", "conflict", "unknown", "refused", "answer_too_large",
}

func (r Reason) String() string { return reasonNames[r] }

// reasons lists all of them.
func reasons() []Reason {
	all := make([]Reason, len(reasonNames))
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// rejection is why an update is not applied. It is an error that nothing but another update
// can mend.
type rejection struct {
	reason Reason
	text   string
}

func rejected(reason Reason, format string, args ...any) *rejection {
	text := fmt.Sprintf(format, args...)
	return &rejection{reason, deadletter.Short(strings.ReplaceAll(text, "\n", "; "))} // errors may be joined
}

func (p *rejection) Error() string { return p.text }

func (p *rejection) why() deadletter.Why {
	return deadletter.Why{Kind: p.reason.String(), Text: p.text}
}
