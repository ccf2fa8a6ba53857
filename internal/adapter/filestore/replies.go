package filestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/stored"
	"github.com/topsail-serving/topsail/serving"
)

// The replies have a bucket of their own.
const (
	repliesBucket = "replies"
	textsBucket   = "texts" // by the hash of the name: when it expires, 8 bytes, and the reply in JSON
	expiryBucket  = "due"   // when it expires, 8 bytes, and the hash, of each reply: the next to go is the first

	repliesNumber    = "count"
	replyBytesNumber = "bytes"
)

// Bounds of the replies together.
const (
	maxReplies    = 10_000
	maxReplyBytes = 128 << 20
)

// replies is the replies, within a transaction.
type replies struct{ root, texts, due *bucket }

func makeReplies(t *tx) (r replies, err error) {
	if r.root, err = t.make(repliesBucket); err != nil {
		return replies{}, err
	}
	if r.texts, err = r.root.make(textsBucket); err != nil {
		return replies{}, err
	}
	r.due, err = r.root.make(expiryBucket)
	return r, err
}

// readReplies is the replies to look at; none while the file has none.
func readReplies(t *tx) (r replies) {
	if r.root = t.bucket(repliesBucket); r.root != nil {
		r.texts, r.due = r.root.bucket(textsBucket), r.root.bucket(expiryBucket)
	}
	return r
}

// room says whether there is room for a reply beside those that are being made.
func (r replies) room(claims int) bool {
	return r.root == nil || r.root.number(repliesNumber)+uint64(claims) < maxReplies && r.root.number(replyBytesNumber) < maxReplyBytes
}

// nameHash is what a reply is kept by: names may be long.
func nameHash(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// live is a reply that has not expired, or nil. What cannot be read is none, nor are the claims
// that earlier releases kept here.
func (r replies) live(hash []byte, now time.Time) *serving.Reply {
	if r.texts == nil {
		return nil
	}
	value := r.texts.get(hash)
	if len(value) < 8 || !dueAt(value).After(now) {
		return nil
	}
	reply, err := stored.DecodeReply(value[8:])
	if err != nil || reply.Status == 0 {
		return nil
	}
	return reply
}

// put keeps a reply in place of the one before. It fails with ErrTooManyReplies where
// there is no room; what has expired has to be cleared before.
func (r replies) put(hash []byte, reply serving.Reply, due time.Time) error {
	text, err := stored.EncodeReply(reply)
	if err != nil {
		return err
	}
	if err := r.remove(hash); err != nil {
		return err
	}
	value := append(binary.BigEndian.AppendUint64(nil, uint64(due.UnixNano())), text...)
	count, size := r.root.number(repliesNumber)+1, r.root.number(replyBytesNumber)+uint64(len(value))
	if count > maxReplies || size > maxReplyBytes {
		return serving.ErrTooManyReplies
	}
	if err := r.texts.put(hash, value); err != nil {
		return err
	}
	if err := r.due.put(dueKey(value, hash), nil); err != nil {
		return err
	}
	return r.charge(count, size)
}

// remove removes a reply, if there is one.
func (r replies) remove(hash []byte) error {
	value := r.texts.get(hash)
	if value == nil {
		return nil
	}
	count, size := r.root.number(repliesNumber), r.root.number(replyBytesNumber)
	count, size = count-min(1, count), size-min(uint64(len(value)), size)
	if len(value) >= 8 {
		if err := r.due.delete(dueKey(value, hash)); err != nil {
			return err
		}
	}
	if err := r.texts.delete(hash); err != nil {
		return err
	}
	return r.charge(count, size)
}

// clear removes the replies that have expired, expiredAtOnce at the most.
func (r replies) clear(now time.Time) error {
	for range expiredAtOnce {
		first, _ := r.due.cursor().first()
		if first == nil || len(first) >= 8 && dueAt(first).After(now) {
			return nil
		}
		first = bytes.Clone(first)
		if len(first) > 8 {
			if err := r.remove(first[8:]); err != nil {
				return err
			}
		}
		if err := r.due.delete(first); err != nil { // where remove found another time, or nothing
			return err
		}
	}
	return nil
}

func (r replies) charge(count, size uint64) error {
	return errors.Join(r.root.putNumber(repliesNumber, count), r.root.putNumber(replyBytesNumber, size))
}

// indexReplies makes what is kept about the replies anew from the replies.
func (t *tx) indexReplies() error {
	r := readReplies(t)
	if r.texts == nil || r.due == nil {
		return nil
	}
	if err := r.due.clear(); err != nil {
		return err
	}
	count, size := uint64(0), uint64(0)
	c := r.texts.cursor()
	for k, v := c.first(); k != nil; k, v = c.next() {
		if len(v) < 8 {
			continue
		}
		if err := r.due.put(dueKey(v, k), nil); err != nil {
			return err
		}
		count, size = count+1, size+uint64(len(v))
	}
	return r.charge(count, size)
}

// dueAt is when a reply expires, by what begins with that.
func dueAt(b []byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(b))) }

func dueKey(value, hash []byte) []byte { return append(bytes.Clone(value[:8]), hash...) }
