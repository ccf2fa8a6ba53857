package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/serving/catalog"
)

// Format 1 had no checksums of values, but one of the buckets of the catalog together, and
// one for each kind that came later.
const (
	oldChecksum   = "checksum"
	oldChecksumOf = "checksum_of_" // and the kind
)

var errOlder = errors.New("written by an older topsail")

// migrate brings a file of format 1 to this one. A copy is kept, for an operator
// who goes back to an older release.
func (s *Store) migrate() error {
	if err := s.view(checkFormat1); err != nil {
		return err
	}
	if err := s.copyTo(copyName(ofFormat1)); err != nil {
		return fmt.Errorf("keep a copy before it is brought to format %d: %w", format, err)
	}
	return s.update(func(t *tx) error {
		meta := t.Bucket([]byte(metaBucket))
		for _, name := range []string{oldChecksum, oldChecksumOf + catalog.Keys, oldChecksumOf + catalog.Streams, formatNumber} {
			if err := meta.Delete([]byte(name)); err != nil {
				return err
			}
		}
		if err := t.migrateBucket(meta, metaBucket); err != nil {
			return err
		}
		err := t.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if string(name) == metaBucket {
				return nil
			}
			return t.migrateBucket(b, string(name))
		})
		return errors.Join(err, t.putFormat())
	})
}

// migrateBucket seals the values of a bucket and of those in it.
func (t *tx) migrateBucket(raw *bbolt.Bucket, path string) error {
	values := map[string][]byte{}
	err := raw.ForEach(func(k, v []byte) error {
		if v == nil {
			return t.migrateBucket(raw.Bucket(k), path+"/"+string(k))
		}
		values[string(k)] = slices.Clone(v)
		return nil
	})
	if err != nil {
		return err
	}
	if n := raw.Sequence(); n != 0 { // the revision of selection states
		values[stateRevisionNumber] = binary.BigEndian.AppendUint64(nil, n)
	}
	sum := total{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		sealed := seal(path, []byte(key), values[key])
		if err := raw.Put([]byte(key), sealed); err != nil {
			return err
		}
		sum = sum.with(sealed)
	}
	if path != metaBucket {
		t.totals[path] = sum
	}
	return nil
}

// checkFormat1 checks what the checksums of format 1 cover.
func checkFormat1(t *tx) error {
	sealed := []string{metaBucket, catalog.Apps, catalog.Versions, catalog.Models}
	for _, name := range sealed {
		if t.Bucket([]byte(name)) == nil {
			return fmt.Errorf("bucket %q is missing", name)
		}
	}
	if sum := t.sumFormat1(sealed...); sum != t.numberFormat1(oldChecksum) {
		return errors.New("its checksum does not match")
	}
	for _, kind := range []string{catalog.Keys, catalog.Streams} {
		there, sum := t.Bucket([]byte(kind)) != nil, t.numberFormat1(oldChecksumOf+kind)
		switch {
		case !there && sum != 0:
			return fmt.Errorf("bucket %q is missing", kind)
		case there && sum != t.sumFormat1(kind):
			return fmt.Errorf("the checksum of bucket %q does not match", kind)
		}
	}
	return nil
}

func (t *tx) numberFormat1(name string) uint64 {
	v := t.Bucket([]byte(metaBucket)).Get([]byte(name))
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

func (t *tx) sumFormat1(buckets ...string) uint64 {
	crc, table := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	add := func(b []byte) {
		crc = crc32.Update(crc, table, binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		crc = crc32.Update(crc, table, b)
	}
	for _, name := range buckets {
		add([]byte(name))
		c := t.Bucket([]byte(name)).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if name != metaBucket || string(k) != oldChecksum {
				add(k)
				add(v)
			}
		}
	}
	return uint64(crc)
}
