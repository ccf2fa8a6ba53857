package filestore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"

	"go.etcd.io/bbolt"
)

// tx is a transaction of the file.
type tx struct {
	*bbolt.Tx
	damaged func(path string, key []byte) // is told of values that are not as they were written
	totals  map[string]total              // that have changed
}

func newTx(raw *bbolt.Tx, damaged func(path string, key []byte)) *tx {
	return &tx{raw, damaged, map[string]total{}}
}

// bucket is a bucket of the file whose values end with a checksum, since bbolt has none.
// How many they are and the sum of their checksums stand in meta: so what a damaged page
// or a lost write took away shows, too.
type bucket struct {
	tx   *tx
	raw  *bbolt.Bucket
	path string // "selection/states"
}

// bucket is nil where there is none.
func (t *tx) bucket(name string) *bucket { return t.wrap(t.Bucket([]byte(name)), name) }

func (t *tx) wrap(raw *bbolt.Bucket, path string) *bucket {
	if raw == nil {
		return nil
	}
	return &bucket{t, raw, path}
}

// make is the bucket of a name, which it makes where there is none.
func (t *tx) make(name string) (*bucket, error) {
	raw, err := t.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		return nil, err
	}
	return t.ready(raw, name)
}

func (b *bucket) bucket(name string) *bucket {
	return b.tx.wrap(b.raw.Bucket([]byte(name)), b.path+"/"+name)
}

func (b *bucket) make(name string) (*bucket, error) {
	raw, err := b.raw.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		return nil, err
	}
	return b.tx.ready(raw, b.path+"/"+name)
}

// ready gives a bucket a total, by which a bucket that is lost is missed.
func (t *tx) ready(raw *bbolt.Bucket, path string) (*bucket, error) {
	b := t.wrap(raw, path)
	if _, there := t.total(path); !there && path != metaBucket {
		t.totals[path] = total{}
	}
	return b, nil
}

// get is valid until the transaction ends. A value that is damaged is not there.
func (b *bucket) get(key []byte) []byte { return b.open(key, b.raw.Get(key)) }

func (b *bucket) open(key, sealed []byte) []byte {
	value, good := unseal(b.path, key, sealed)
	if !good && sealed != nil {
		b.tx.damaged(b.path, key)
	}
	return value
}

func (b *bucket) put(key, value []byte) error {
	sealed := seal(b.path, key, value)
	b.count(b.raw.Get(key), sealed)
	return b.raw.Put(key, sealed)
}

func (b *bucket) delete(key []byte) error {
	b.count(b.raw.Get(key), nil)
	return b.raw.Delete(key)
}

// clear removes all values.
func (b *bucket) clear() error {
	for k, _ := b.raw.Cursor().First(); k != nil; k, _ = b.raw.Cursor().First() {
		if err := b.raw.Delete(bytes.Clone(k)); err != nil {
			return err
		}
	}
	b.tx.totals[b.path] = total{}
	return nil
}

// count notes that one value takes the place of another; nil for none.
func (b *bucket) count(old, next []byte) {
	if b.path != metaBucket {
		sum, _ := b.tx.total(b.path)
		b.tx.totals[b.path] = sum.without(old).with(next)
	}
}

// cursor goes through the values of a bucket, past those that are damaged.
func (b *bucket) cursor() *cursor { return &cursor{b, b.raw.Cursor()} }

type cursor struct {
	b   *bucket
	raw *bbolt.Cursor
}

func (c *cursor) first() (key, value []byte) { return c.good(c.raw.First, c.raw.Next) }
func (c *cursor) last() (key, value []byte)  { return c.good(c.raw.Last, c.raw.Prev) }
func (c *cursor) next() (key, value []byte)  { return c.good(c.raw.Next, c.raw.Next) }
func (c *cursor) prev() (key, value []byte)  { return c.good(c.raw.Prev, c.raw.Prev) }
func (c *cursor) seek(key []byte) (k, value []byte) {
	return c.good(func() (k, v []byte) { return c.raw.Seek(key) }, c.raw.Next)
}

func (c *cursor) good(move, further func() (k, v []byte)) (key, value []byte) {
	for k, v := move(); k != nil; k, v = further() {
		if v == nil { // a bucket
			continue
		}
		if value := c.b.open(k, v); value != nil {
			return k, value
		}
	}
	return nil, nil
}

// total is how many values a bucket has, and the sum of their checksums.
type total struct{ values, sum uint64 }

func (t total) with(sealed []byte) total {
	if sealed == nil {
		return t
	}
	return total{t.values + 1, t.sum + checksumIn(sealed)}
}

func (t total) without(sealed []byte) total {
	if sealed == nil {
		return t
	}
	return total{t.values - 1, t.sum - checksumIn(sealed)}
}

// totalOf begins the names of totals in meta; the path of the bucket follows.
const totalOf = "total_of_"

func (t *tx) total(path string) (sum total, there bool) {
	if sum, there = t.totals[path]; there {
		return sum, true
	}
	v := t.bucket(metaBucket).get([]byte(totalOf + path))
	if len(v) != 16 {
		return total{}, false
	}
	return total{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])}, true
}

// putTotals is the last step of a write.
func (t *tx) putTotals() error {
	for path, sum := range t.totals {
		v := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, sum.values), sum.sum)
		if err := t.bucket(metaBucket).put([]byte(totalOf+path), v); err != nil {
			return err
		}
	}
	return nil
}

const checksumLength = 4

// seal adds the checksum to a value, a CRC-32C that also covers where it stands.
func seal(path string, key, value []byte) []byte {
	sealed := append(make([]byte, 0, len(value)+checksumLength), value...)
	return binary.BigEndian.AppendUint32(sealed, checksum(path, key, value))
}

// unseal is never nil for a good value.
func unseal(path string, key, sealed []byte) (value []byte, good bool) {
	end := len(sealed) - checksumLength
	if end < 0 || binary.BigEndian.Uint32(sealed[end:]) != checksum(path, key, sealed[:end]) {
		return nil, false
	}
	return sealed[:end:end], true
}

func checksum(path string, key, value []byte) uint32 {
	crc, table := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	for _, part := range [][]byte{[]byte(path), key, value} {
		crc = crc32.Update(crc, table, binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		crc = crc32.Update(crc, table, part)
	}
	return crc
}

func checksumIn(sealed []byte) uint64 {
	if len(sealed) < checksumLength {
		return math.MaxUint32
	}
	return uint64(binary.BigEndian.Uint32(sealed[len(sealed)-checksumLength:]))
}

// number is 0 where there is none.
func (b *bucket) number(name string) uint64 {
	v := b.get([]byte(name))
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

func (b *bucket) putNumber(name string, n uint64) error {
	return b.put([]byte(name), binary.BigEndian.AppendUint64(nil, n))
}

func (t *tx) number(name string) uint64 { return t.bucket(metaBucket).number(name) }

func (t *tx) putNumber(name string, n uint64) error { return t.bucket(metaBucket).putNumber(name, n) }
