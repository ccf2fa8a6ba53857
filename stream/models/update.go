package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/stream"
)

// Update is a message of a model stream. It points into the message that it was read from.
type Update struct {
	UUID     string // pairs the acknowledgement with the update
	Sequence uint64 // the sender's order of its updates of one model; 0: their places are the order
	Model    *Model // one of these
	Ensemble *Ensemble
	Policy   *PolicyChange
	Mapping  *StreamChange
	Remove   *Removal
	Format   stream.Format // Protobuf or JSON
}

// maxName bounds ids and names, in bytes.
const maxName = 256

// ParseUpdate reads a message of a known format. What it takes may still lack its id.
func ParseUpdate(message []byte, format stream.Format) (Update, error) {
	u := Update{Format: format}
	var err error
	if format == stream.JSON {
		err = u.parseJSON(message)
	} else {
		err = u.parseProtobuf(message)
	}
	if err == nil && u.count() != 1 {
		err = errors.New("it needs one of model, ensemble, policy, stream and remove")
	}
	if err == nil && len(u.UUID) > maxName {
		err = fmt.Errorf("uuid has %d bytes: use at most %d", len(u.UUID), maxName)
	}
	if err != nil {
		return Update{}, fmt.Errorf("the message is no %v update: %w", format, err)
	}
	return u, nil
}

// count is how much the update is about.
func (u *Update) count() (n int) {
	for _, is := range []bool{u.Model != nil, u.Ensemble != nil, u.Policy != nil, u.Mapping != nil, u.Remove != nil} {
		if is {
			n++
		}
	}
	return n
}

// app names the app that the update is about; empty: it is about a model.
func (u *Update) app() string {
	switch {
	case u.Ensemble != nil:
		return u.Ensemble.Name
	case u.Policy != nil:
		return u.Policy.App
	case u.Remove != nil:
		return u.Remove.App
	}
	return ""
}

// about names what the update is about: updates of one name are applied one after the other.
func (u *Update) about() string {
	switch app := u.app(); {
	case app != "":
		return "app " + app
	case u.Remove != nil:
		return "model " + u.Remove.Model
	case u.Model != nil:
		return "model " + u.Model.Name
	case u.Mapping != nil:
		return "stream " + u.Mapping.Name
	}
	return "app " // that has no name, which its check says
}

// content is a checksum of what the update says.
func (u *Update) content() string {
	switch {
	case u.Model != nil:
		return u.Model.content()
	case u.Ensemble != nil:
		return u.Ensemble.content()
	case u.Policy != nil:
		return u.Policy.content()
	case u.Mapping != nil:
		return u.Mapping.content()
	}
	return u.Remove.content()
}

// sharesApp says whether one update has an app ask its model, or takes a model away that any app
// may ask, and the other one is about that app: then the later one is to have the last word.
func (u *Update) sharesApp(v *Update) bool {
	if u.app() != "" {
		u, v = v, u
	}
	app := v.app()
	if u.app() != "" || app == "" {
		return false
	}
	return u.Remove != nil || u.Model != nil && slices.Contains(u.Model.Apps, app)
}

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
