package filestore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// keptAsides is how many states that were set aside an app has.
const keptAsides = 8

// aside is a state that was no good, for people to look into.
type aside struct {
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Why      string    `json:"why"`
	At       time.Time `json:"at"`
	Text     []byte    `json:"text"`
}

// asideName orders those of an app by their revisions.
func asideName(app string, revision uint64) string {
	return fmt.Sprintf("%s%020d", appPrefix(app), revision)
}

// setAside puts the state that a is of under another name.
func (l learned) setAside(name string, a aside) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	value := append(binary.BigEndian.AppendUint64(nil, uint64(a.At.UnixNano())), text...)
	if err := l.aside.put([]byte(name), value); err != nil {
		return err
	}
	return l.remove(a.Key)
}

// forgetAsides removes those that have expired, and all but the newest of an app.
func (l learned) forgetAsides(app string, now time.Time) error {
	var gone, ofApp [][]byte
	c := l.aside.cursor()
	for k, v := c.first(); k != nil; k, v = c.next() {
		switch {
		case len(v) < 8 || expired(time.Unix(0, int64(binary.BigEndian.Uint64(v))), now):
			gone = append(gone, bytes.Clone(k))
		case bytes.HasPrefix(k, appPrefix(app)):
			ofApp = append(ofApp, bytes.Clone(k))
		}
	}
	gone = append(gone, ofApp[:max(0, len(ofApp)-keptAsides)]...)
	for _, k := range gone {
		if err := l.aside.delete(k); err != nil {
			return err
		}
	}
	return nil
}
