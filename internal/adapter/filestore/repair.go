package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// damagedBucket keeps values that were damaged as they were found, by path and key, for
// people to look into. Its bounds are for all of them together.
const (
	damagedBucket   = "damaged"
	maxDamaged      = 1000
	maxDamagedBytes = 16 << 20
)

// faults is what is wrong with one bucket.
type faults struct {
	path    string
	keys    [][]byte // of values that are damaged
	is, was total    // of the values that are not; as it is noted
}

func (f faults) none() bool { return len(f.keys) == 0 && f.is == f.was }

// String says what is lost, for operators.
func (f faults) String() string {
	switch missing := int64(f.was.values - f.is.values); { //nolint:gosec // of a count
	case missing > 0:
		return fmt.Sprintf("%d of %d values of %q are damaged or missing, and are set aside", missing, f.was.values, f.path)
	default:
		return fmt.Sprintf("%q has values of another time than the rest", f.path)
	}
}

// check finds what is wrong with the values of all buckets. It fails where the catalog is
// damaged, or a bucket is missing.
func (t *tx) check() (found []faults, err error) {
	meta, noted := t.bucket(metaBucket), map[string]total{}
	err = meta.raw.ForEach(func(k, v []byte) error {
		if string(k) == formatNumber {
			return nil
		}
		if _, good := unseal(metaBucket, k, v); !good {
			return fmt.Errorf("the checksum of %.40q does not match", k)
		}
		if path, ok := strings.CutPrefix(string(k), totalOf); ok {
			noted[path], _ = t.total(path)
		}
		return nil
	})
	if err == nil && meta.get([]byte(revisionNumber)) == nil {
		err = errors.New("its revision is missing")
	}
	if err != nil {
		return nil, err
	}
	err = t.ForEach(func(name []byte, raw *bbolt.Bucket) error {
		if string(name) == metaBucket {
			return nil
		}
		more, err := t.checkBucket(raw, string(name), noted)
		found = append(found, more...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(noted) > 0 {
		return nil, fmt.Errorf("bucket %q is missing", slices.Sorted(maps.Keys(noted))[0])
	}
	for _, f := range found {
		if slices.Contains(kinds(), f.path) {
			return nil, fmt.Errorf("the checksum of bucket %q does not match", f.path)
		}
	}
	return found, nil
}

// checkBucket checks a bucket and those in it, and takes them out of what is noted.
func (t *tx) checkBucket(raw *bbolt.Bucket, path string, noted map[string]total) (found []faults, err error) {
	was, there := noted[path]
	if !there {
		return nil, fmt.Errorf("there is a bucket %.40q, of which nothing is known", path)
	}
	delete(noted, path)
	f := faults{path: path, was: was}
	err = raw.ForEach(func(k, v []byte) error {
		if v == nil {
			more, err := t.checkBucket(raw.Bucket(k), path+"/"+string(k), noted)
			found = append(found, more...)
			return err
		}
		if _, good := unseal(path, k, v); good {
			f.is = f.is.with(v)
		} else {
			f.keys = append(f.keys, bytes.Clone(k))
		}
		return nil
	})
	if !f.none() {
		found = append(found, f)
	}
	return found, err
}

// repair sets aside what is damaged beside the catalog, so that the rest can be used, and
// says what it was.
func (s *Store) repair() (said []string, err error) {
	var found []faults
	err = s.view(func(t *tx) (err error) {
		found, err = t.check()
		return err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, f := range found {
		said = append(said, f.String())
	}
	return said, s.update(func(t *tx) error {
		for _, f := range found {
			if err := t.setAside(f); err != nil {
				return err
			}
		}
		return t.indexStates()
	})
}

// noteTorn leaves a trace of a page that was lost, so that later copies are known to be of a
// state that may lack something. Where that fails, those of this process are, all the same.
func (s *Store) noteTorn() {
	_ = s.update(func(t *tx) error {
		aside, err := t.make(damagedBucket)
		if err != nil {
			return err
		}
		return aside.put([]byte("pages"), []byte(tornMeta))
	})
}

// setAside moves damaged values out of their bucket.
func (t *tx) setAside(f faults) error {
	aside, err := t.make(damagedBucket)
	if err != nil {
		return err
	}
	raw := t.find(f.path)
	for _, key := range f.keys {
		if sum, _ := t.total(damagedBucket); sum.values < maxDamaged && aside.number(asideBytes)+uint64(len(raw.Get(key))) < maxDamagedBytes {
			value := bytes.Clone(raw.Get(key))
			name := append([]byte(f.path+"/"), key...)
			if err := errors.Join(aside.put(name[:min(len(name), bbolt.MaxKeySize)], value), aside.putNumber(asideBytes, aside.number(asideBytes)+uint64(len(value)))); err != nil {
				return err
			}
		}
		if err := raw.Delete(key); err != nil {
			return err
		}
	}
	t.totals[f.path] = f.is
	return nil
}

// asideBytes is how many bytes are in the bucket of damaged values.
const asideBytes = "bytes"

// find is the bucket of a path.
func (t *tx) find(path string) *bbolt.Bucket {
	name, rest, below := strings.Cut(path, "/")
	b := t.Bucket([]byte(name))
	for below {
		name, rest, below = strings.Cut(rest, "/")
		b = b.Bucket([]byte(name))
	}
	return b
}
