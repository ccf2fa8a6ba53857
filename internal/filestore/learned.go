package filestore

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"topsail/serving"
)

// The selection states have a bucket of their own, which the checksum does not cover:
// to store one does not read the others, and a file without them is as good. Its
// sequence is the last revision of all states.
const (
	learnedBucket = "selection"
	statesBucket  = "states" // by key: revision and sight, 8 bytes each, and the text
	seenBucket    = "seen"   // sight, 8 bytes, and key, of each state: the next to go is the first
	asideBucket   = "aside"  // by app and revision: when, 8 bytes, and an aside in JSON

	statesNumber = "count"
	bytesNumber  = "bytes"
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
type learned struct{ root, states, seen, aside *bbolt.Bucket }

// state is one of them; without a revision, there is none.
type state struct {
	revision uint64
	seen     time.Time
	text     []byte // of the transaction
}

func openLearned(tx *bbolt.Tx) (l learned, there bool) {
	if l.root = tx.Bucket([]byte(learnedBucket)); l.root == nil {
		return learned{}, false
	}
	l.states, l.seen, l.aside = l.root.Bucket([]byte(statesBucket)), l.root.Bucket([]byte(seenBucket)), l.root.Bucket([]byte(asideBucket))
	return l, l.states != nil && l.seen != nil && l.aside != nil
}

func makeLearned(tx *bbolt.Tx) (l learned, err error) {
	if l.root, err = tx.CreateBucketIfNotExists([]byte(learnedBucket)); err != nil {
		return learned{}, err
	}
	for name, b := range map[string]**bbolt.Bucket{statesBucket: &l.states, seenBucket: &l.seen, asideBucket: &l.aside} {
		if *b, err = l.root.CreateBucketIfNotExists([]byte(name)); err != nil {
			return learned{}, err
		}
	}
	return l, nil
}

// live is a state that has not expired, though it may not be cleared away yet.
func (l learned) live(name string, now time.Time) state {
	found := decodeState(l.states.Get([]byte(name)))
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
	if err := l.states.Put([]byte(name), value); err != nil {
		return err
	}
	if err := l.seen.Put(seenKey(s.seen, name), nil); err != nil {
		return err
	}
	return l.charge(l.number(statesNumber)+1, l.number(bytesNumber)+weight(name, value))
}

// remove removes a state, if there is one.
func (l learned) remove(name string) error {
	value := l.states.Get([]byte(name))
	if value == nil {
		return nil
	}
	states, bytes := l.number(statesNumber), l.number(bytesNumber)
	states, bytes = states-min(1, states), bytes-min(weight(name, value), bytes)
	if err := l.seen.Delete(seenKey(decodeState(value).seen, name)); err != nil {
		return err
	}
	if err := l.states.Delete([]byte(name)); err != nil {
		return err
	}
	return l.charge(states, bytes)
}

// makeRoom removes the states that were not seen for the longest until the rest is
// within bounds, and some of those that have expired.
func (l learned) makeRoom(most bounds, now time.Time) error {
	for removed := 0; ; removed++ {
		first, _ := l.seen.Cursor().First()
		if first == nil {
			return nil
		}
		over := l.number(statesNumber) > most.states || l.number(bytesNumber) > most.bytes
		seen, name := splitSeen(first)
		if !over && (removed >= expiredAtOnce || !expired(seen, now)) {
			return nil
		}
		if err := l.remove(name); err != nil {
			return err
		}
		if err := l.seen.Delete(seenKey(seen, name)); err != nil { // where remove found another sight, or nothing
			return err
		}
	}
}

// keysOf is the keys of an app's states, limit at the most.
func (l learned) keysOf(app string, limit int, now time.Time) (keys []serving.StateKey) {
	prefix := appPrefix(app)
	c := l.states.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(keys) < limit; k, v = c.Next() {
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

func (l learned) number(name string) uint64 { return numberIn(l.root, name) }

func (l learned) charge(states, bytes uint64) error {
	if err := l.root.Put([]byte(statesNumber), binary.BigEndian.AppendUint64(nil, states)); err != nil {
		return err
	}
	return l.root.Put([]byte(bytesNumber), binary.BigEndian.AppendUint64(nil, bytes))
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
