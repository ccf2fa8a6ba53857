package models

import (
	"encoding/json"
	"fmt"

	"github.com/topsail-serving/topsail/stream"
)

// Acknowledgement says what became of an update.
type Acknowledgement struct {
	UUID    string `json:"uuid"`
	Outcome string `json:"outcome"` // one of the outcomes
	Model   string `json:"model,omitempty"`
	Version string `json:"version,omitempty"`
	App     string `json:"app,omitempty"`    // that was configured or removed
	Bundle  string `json:"bundle,omitempty"` // the digest of the version's bundle
}

// What can become of an update, but for a dead letter.
const (
	Deployed   = "deployed"   // the version is registered, and current unless it was not to be; it serves when it is ready
	Unchanged  = "unchanged"  // another update did the same, or there is nothing to remove, so nothing happened
	Outdated   = "outdated"   // a newer update was there before: of a model, the version is registered, and that one stays current; of all else, nothing happened
	Configured = "configured" // the app, its policy or the stream is as it was to be
	Removed    = "removed"    // it is gone
)

// outcomes lists all of them.
func outcomes() []string { return []string{Deployed, Unchanged, Outdated, Configured, Removed} }

// ParseAcknowledgement reads a message that a job produced.
func ParseAcknowledgement(message []byte, format stream.Format) (Acknowledgement, error) {
	var a Acknowledgement
	var err error
	if format == stream.JSON {
		err = json.Unmarshal(message, &a)
	} else {
		err = a.parseProtobuf(message)
	}
	if err != nil {
		return Acknowledgement{}, fmt.Errorf("the message is no %v acknowledgement: %w", format, err)
	}
	return a, nil
}

// append appends the acknowledgement in a format.
func (a *Acknowledgement) append(b []byte, format stream.Format) []byte {
	if format == stream.JSON {
		return a.AppendJSON(b)
	}
	return a.AppendProtobuf(b)
}
