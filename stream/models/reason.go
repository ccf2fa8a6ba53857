package models

import (
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/stream"
)

// Why updates become dead letters, beside the reasons that every job has.
const (
	UnknownKind     stream.Reason = "unknown_kind"     // of model
	UnknownType     stream.Reason = "unknown_type"     // of data
	Invalid         stream.Reason = "invalid"          // the descriptor is wrong in itself
	WrongChecksum   stream.Reason = "wrong_checksum"   // of the model
	LocationRefused stream.Reason = "location_refused" // not one that the job fetches from
	LocationAway    stream.Reason = "location_away"    // cannot be fetched
	ModelTooLarge   stream.Reason = "model_too_large"  // what is at the location, or in the archive
	Conflict        stream.Reason = "conflict"         // another version has this name
	Unknown         stream.Reason = "unknown"          // names an app or a model that there is not
	Refused         stream.Reason = "refused"          // by the management API
	AnswerTooLarge  stream.Reason = "answer_too_large" // the acknowledgement, for the broker
)

// reasons lists all of them.
func reasons() []stream.Reason {
	return []stream.Reason{
		UnknownKind, UnknownType, Invalid, WrongChecksum, LocationRefused, LocationAway, ModelTooLarge, Conflict, Unknown, Refused, AnswerTooLarge,
	}
}

// rejected makes a rejection, in one line: errors may be joined.
func rejected(reason stream.Reason, format string, args ...any) *stream.Rejection {
	return stream.Rejected(reason, "%s", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "))
}
