package filestore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// keptAsides bounds the states that an app has set aside: a restoration sets aside all that was
// learned since, of each user.
const (
	keptAsides     = 1000
	keptAsideBytes = 16 << 20
)

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

// forgetAsides removes those that have expired, and of an app all but the newest, within bounds
// and one at least.
func (l learned) forgetAsides(app string, most bounds, now time.Time) error {
	var gone [][]byte
	kept := bounds{}
	c := l.aside.cursor()
	for k, v := c.last(); k != nil; k, v = c.prev() { // the newest of an app first
		switch {
		case len(v) < 8 || expired(time.Unix(0, int64(binary.BigEndian.Uint64(v))), now):
			gone = append(gone, bytes.Clone(k))
		case bytes.HasPrefix(k, appPrefix(app)):
			kept.states, kept.bytes = kept.states+1, kept.bytes+uint64(len(v))
			if kept.states > max(1, most.states) || kept.states > 1 && kept.bytes > most.bytes {
				gone = append(gone, bytes.Clone(k))
			}
		}
	}
	for _, k := range gone {
		if err := l.aside.delete(k); err != nil {
			return err
		}
	}
	return nil
}
