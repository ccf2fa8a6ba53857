package models

import (
	"errors"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/stream"
)

// Update is a message of a model stream. It points into the message that it was read from.
type Update struct {
	UUID     string // pairs the acknowledgement with the update
	Sequence uint64 // the sender's order of its updates of one model; 0: their places are the order
	Model    *Model // one of both
	Ensemble *Ensemble
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
	if err == nil && (u.Model == nil) == (u.Ensemble == nil) {
		err = errors.New("it needs a model or an ensemble, and not both")
	}
	if err == nil && len(u.UUID) > maxName {
		err = fmt.Errorf("uuid has %d bytes: use at most %d", len(u.UUID), maxName)
	}
	if err != nil {
		return Update{}, fmt.Errorf("the message is no %v update: %w", format, err)
	}
	return u, nil
}

// about names what the update is about: updates of one name are applied one after the other.
func (u *Update) about() string {
	if u.Model != nil {
		return "model " + u.Model.Name
	}
	return "app " + u.Ensemble.Name
}

// sharesApp says whether one update has an app ask its model, and the other one says which
// models that app asks: then the later one is to have the last word.
func (u *Update) sharesApp(v *Update) bool {
	if u.Model == nil {
		u, v = v, u
	}
	return u.Model != nil && v.Ensemble != nil && slices.Contains(u.Model.Apps, v.Ensemble.Name)
}
