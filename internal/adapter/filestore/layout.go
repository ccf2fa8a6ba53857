package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/topsail-serving/topsail/internal/durable"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// format is the version of the layout: the bucket meta with the numbers below, a bucket for
// each kind of catalog.Document, and those of the other files of this package, all with
// checksums. Within a format, buckets, numbers and JSON fields may be added; what breaks
// older releases is a new one.
const format = 2

const metaBucket = "meta"

// initialTx is the transaction of a file that bbolt has just made. A later one
// without buckets is damaged, not fresh.
const initialTx = 1

// formatNumber is in meta like the other numbers, but without a checksum, where all releases
// find it. A damaged one is another format.
const formatNumber = "format"

// The numbers in meta, 8 bytes each, big endian.
const (
	revisionNumber = "revision"
	leaseNumber    = "query_id_block" // the last one leased
)

var (
	errFresh       = errors.New("nothing is in it yet")
	errOtherFormat = errors.New("written by another release of topsail")
)

// kinds are the kinds of documents, each with a bucket.
func kinds() []string {
	return []string{catalog.Apps, catalog.Versions, catalog.Models, catalog.Keys, catalog.Streams}
}

// loadOrCreate reads the catalog, and lays out the file first where it is fresh. What is
// damaged beside the catalog is set aside and found.
func (s *Store) loadOrCreate() (cat *serving.Catalog, found []string, err error) {
	err = s.view(func(t *tx) error { return t.checkFormat() })
	if errors.Is(err, errFresh) {
		err = errors.Join(s.update(create), durable.Sync(filepath.Dir(s.path)))
	}
	if err == nil {
		found, err = s.repair()
	}
	if err == nil {
		err = s.view(func(t *tx) (err error) {
			cat, err = catalog.Decode(t.number(revisionNumber), t.documents())
			return err
		})
	}
	return cat, found, err
}

// checkFormat fails with errFresh where the file has no format yet, and with errOtherFormat where it has another.
func (t *tx) checkFormat() error {
	if t.ID() <= initialTx {
		return errFresh
	}
	meta := t.Bucket([]byte(metaBucket))
	if meta == nil {
		return fmt.Errorf("bucket %q is missing", metaBucket)
	}
	stored := meta.Get([]byte(formatNumber))
	if len(stored) != 8 {
		return errors.New("its format is missing")
	}
	if f := binary.BigEndian.Uint64(stored); f != format {
		return fmt.Errorf("%w: its format is %d, and this one reads %d", errOtherFormat, f, format)
	}
	return nil
}

func create(t *tx) error {
	for _, name := range append([]string{metaBucket}, kinds()...) {
		if _, err := t.make(name); err != nil {
			return err
		}
	}
	return errors.Join(t.putNumber(revisionNumber, 0), t.putFormat())
}

func (t *tx) putFormat() error {
	return t.Bucket([]byte(metaBucket)).Put([]byte(formatNumber), binary.BigEndian.AppendUint64(nil, format))
}

// save replaces the catalog from, which the file must hold, by to, and adds entries to the audit log.
func (s *Store) save(from, to *serving.Catalog, entries []serving.AuditEntry) error {
	docs, err := catalog.Diff(from, to)
	if err != nil {
		return err
	}
	return s.update(func(t *tx) error {
		// An earlier commit may have failed after its last page was written.
		if at := t.number(revisionNumber); at != from.Revision {
			return fmt.Errorf("the file is at revision %d, and %d was expected; restart topsail to go on from what is in the file", at, from.Revision)
		}
		if err := followUsage(t, docs, to.Revision, now()); err != nil {
			return err
		}
		for _, doc := range docs {
			if err := t.putDocument(doc); err != nil {
				return err
			}
		}
		return errors.Join(t.putNumber(revisionNumber, to.Revision), addEntries(t, entries))
	})
}

func (t *tx) putDocument(doc catalog.Document) error {
	b, err := t.make(doc.Kind)
	if err != nil {
		return err
	}
	if doc.JSON == nil {
		return b.delete([]byte(doc.Key))
	}
	return b.put([]byte(doc.Key), doc.JSON)
}

// documents yields the documents; their JSON is valid until the transaction ends.
func (t *tx) documents() iter.Seq[catalog.Document] {
	return func(yield func(catalog.Document) bool) {
		for _, kind := range kinds() {
			b := t.bucket(kind)
			if b == nil { // of a release that did not know the kind
				continue
			}
			c := b.cursor()
			for k, v := c.first(); k != nil; k, v = c.next() {
				if !yield(catalog.Document{Kind: kind, Key: string(k), JSON: v}) {
					return
				}
			}
		}
	}
}
