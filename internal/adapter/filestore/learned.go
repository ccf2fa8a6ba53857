package filestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// The selection states have a bucket of their own; a file without it is as good.
const (
	learnedBucket = "selection"
	statesBucket  = "states" // by key: revision and sight, 8 bytes each, and the text
	seenBucket    = "seen"   // sight, 8 bytes, and key, of each state: the next to go is the first
	asideBucket   = "aside"  // by app and revision: when, 8 bytes, and an aside in JSON

	statesNumber        = "count"
	bytesNumber         = "bytes"
	stateRevisionNumber = "revision" // the last of all states
)

// bounds are how much the states may be together.
type bounds struct{ states, bytes uint64 }

const (
	maxStates     = 100_000
	maxStateBytes = 128 << 20
)

// expiredAtOnce bounds how many expired states one write clears away.
const expiredAtOnce = 100

// learned is the selection states, within a transaction.
type learned struct{ root, states, seen, aside *bucket }

// state is one of them; without a revision, there is none.
type state struct {
	revision uint64
	seen     time.Time
	text     []byte // of the transaction
}

func openLearned(t *tx) (l learned, there bool) {
	if l.root = t.bucket(learnedBucket); l.root == nil {
		return learned{}, false
	}
	l.states, l.seen, l.aside = l.root.bucket(statesBucket), l.root.bucket(seenBucket), l.root.bucket(asideBucket)
	return l, l.states != nil && l.seen != nil && l.aside != nil
}

func makeLearned(t *tx) (l learned, err error) {
	if l.root, err = t.make(learnedBucket); err != nil {
		return learned{}, err
	}
	for name, b := range map[string]**bucket{statesBucket: &l.states, seenBucket: &l.seen, asideBucket: &l.aside} {
		if *b, err = l.root.make(name); err != nil {
			return learned{}, err
		}
	}
	return l, nil
}

// live is a state that has not expired, though it may not be cleared away yet.
func (l learned) live(name string, now time.Time) state {
	found := decodeState(l.states.get([]byte(name)))
	if expired(found.seen, now) {
		return state{}
	}
	return found
}

func expired(seen, now time.Time) bool { return now.Sub(seen) >= serving.StateExpiry }

// put stores a state in place of the one before.
func (l learned) put(name string, s state) error {
	value := encodeState(s) // before what may hold its text is removed
	if err := l.remove(name); err != nil {
		return err
	}
	if err := l.states.put([]byte(name), value); err != nil {
		return err
	}
	if err := l.seen.put(seenKey(s.seen, name), nil); err != nil {
		return err
	}
	return l.charge(l.root.number(statesNumber)+1, l.root.number(bytesNumber)+weight(name, value))
}

// remove removes a state, if there is one.
func (l learned) remove(name string) error {
	value := l.states.get([]byte(name))
	if value == nil {
		return nil
	}
	states, bytes := l.root.number(statesNumber), l.root.number(bytesNumber)
	states, bytes = states-min(1, states), bytes-min(weight(name, value), bytes)
	if err := l.seen.delete(seenKey(decodeState(value).seen, name)); err != nil {
		return err
	}
	if err := l.states.delete([]byte(name)); err != nil {
		return err
	}
	return l.charge(states, bytes)
}

// makeRoom removes the states that were not seen for the longest until the rest is
// within bounds, and some of those that have expired.
func (l learned) makeRoom(most bounds, now time.Time) error {
	for removed := 0; ; removed++ {
		first, _ := l.seen.cursor().first()
		if first == nil {
			return nil
		}
		over := l.root.number(statesNumber) > most.states || l.root.number(bytesNumber) > most.bytes
		seen, name := splitSeen(first)
		if !over && (removed >= expiredAtOnce || !expired(seen, now)) {
			return nil
		}
		if err := l.remove(name); err != nil {
			return err
		}
		if err := l.seen.delete(seenKey(seen, name)); err != nil { // where remove found another sight, or nothing
			return err
		}
	}
}

// keysOf is the keys of an app's states, limit at the most.
func (l learned) keysOf(app string, limit int, now time.Time) (keys []serving.StateKey) {
	prefix := appPrefix(app)
	c := l.states.cursor()
	for k, v := c.seek(prefix); bytes.HasPrefix(k, prefix) && len(keys) < limit; k, v = c.next() {
		key, err := serving.ParseStateKey(string(k))
		if err == nil && !expired(decodeState(v).seen, now) {
			keys = append(keys, key)
		}
	}
	return keys
}

// appPrefix is what the keys of an app begin with, and no others.
func appPrefix(app string) []byte { return append(strconv.AppendQuote(nil, app), ' ') }

// weight is about what a state takes in the file.
func weight(name string, value []byte) uint64 { return uint64(64 + 2*len(name) + len(value)) }

func (l learned) charge(states, bytes uint64) error {
	return errors.Join(l.root.putNumber(statesNumber, states), l.root.putNumber(bytesNumber, bytes))
}

// nextRevision is one that no state had.
func (l learned) nextRevision() (uint64, error) {
	next := l.root.number(stateRevisionNumber) + 1
	return next, l.root.putNumber(stateRevisionNumber, next)
}

// indexStates makes what is kept about the states anew from the states.
func (t *tx) indexStates() error {
	l, there := openLearned(t)
	if !there {
		return nil
	}
	if err := l.seen.clear(); err != nil {
		return err
	}
	states, size, revision := uint64(0), uint64(0), l.root.number(stateRevisionNumber)
	c := l.states.cursor()
	for k, v := c.first(); k != nil; k, v = c.next() {
		s := decodeState(v)
		if err := l.seen.put(seenKey(s.seen, string(k)), nil); err != nil {
			return err
		}
		states, size, revision = states+1, size+weight(string(k), v), max(revision, s.revision)
	}
	return errors.Join(l.charge(states, size), l.root.putNumber(stateRevisionNumber, revision))
}

func encodeState(s state) []byte {
	b := make([]byte, 0, 16+len(s.text))
	b = binary.BigEndian.AppendUint64(b, s.revision)
	b = binary.BigEndian.AppendUint64(b, uint64(s.seen.UnixNano()))
	return append(b, s.text...)
}

// decodeState finds no state in what is none.
func decodeState(b []byte) state {
	if len(b) < 16 {
		return state{}
	}
	seen := time.Unix(0, int64(binary.BigEndian.Uint64(b[8:])))
	return state{binary.BigEndian.Uint64(b), seen, b[16:]}
}

func seenKey(seen time.Time, name string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(seen.UnixNano())), name...)
}

func splitSeen(key []byte) (seen time.Time, name string) {
	if len(key) < 8 {
		return time.Time{}, string(key)
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(key))), string(key[8:])
}
