package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"path/filepath"

	"go.etcd.io/bbolt"

	"topsail/serving"
	"topsail/serving/catalog"
)

// format is the version of the layout: the bucket meta with the numbers below,
// and a bucket for each kind of catalog.Document. Within a format, buckets,
// numbers and JSON fields may be added; what breaks older releases is a new one.
// So kinds that are added have checksums of their own: older releases check that of
// the first ones, and leave the others alone.
const format = 1

const metaBucket = "meta"

// initialTx is the transaction of a file that bbolt has just made. A later one
// without buckets is damaged, not fresh.
const initialTx = 1

// The numbers in meta, 8 bytes each, big endian.
const (
	formatNumber   = "format"
	revisionNumber = "revision"
	leaseNumber    = "query_id_block" // the last one leased
	checksumNumber = "checksum"       // of the sealed buckets, but for this; bbolt has none of its own
	checksumOf     = "checksum_of_"   // and the kind: of the bucket of an added kind, if there is one
)

var (
	errFresh = errors.New("nothing is in it yet")
	errNewer = errors.New("written by a newer topsail")
)

// firstKinds are the kinds of documents that every file has had.
func firstKinds() []string { return []string{catalog.Apps, catalog.Versions, catalog.Models} }

// addedKinds are the ones that came later: a file need not have buckets for them.
func addedKinds() []string { return []string{catalog.Keys, catalog.Streams} }

// sealedBuckets are the buckets that read needs and the checksum covers.
func sealedBuckets() []string { return append([]string{metaBucket}, firstKinds()...) }

// loadOrCreate reads the catalog, and lays out the file first where it is fresh.
func loadOrCreate(db *bbolt.DB) (*serving.Catalog, error) {
	cat, err := load(db)
	if !errors.Is(err, errFresh) {
		return cat, err
	}
	if err := errors.Join(db.Update(create), syncDir(filepath.Dir(db.Path()))); err != nil {
		return nil, err
	}
	return load(db)
}

func create(tx *bbolt.Tx) error {
	for _, name := range sealedBuckets() {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return errors.Join(putNumber(tx, formatNumber, format), seal(tx))
}

func load(db *bbolt.DB) (cat *serving.Catalog, err error) {
	err = db.View(func(tx *bbolt.Tx) (err error) {
		cat, err = read(tx)
		return err
	})
	return cat, err
}

func read(tx *bbolt.Tx) (*serving.Catalog, error) {
	if tx.ID() <= initialTx {
		return nil, errFresh
	}
	for _, name := range sealedBuckets() {
		if tx.Bucket([]byte(name)) == nil {
			return nil, fmt.Errorf("bucket %q is missing", name)
		}
	}
	if f := number(tx, formatNumber); f > format {
		return nil, fmt.Errorf("%w: its format is %d, and this one knows up to %d", errNewer, f, format)
	}
	if number(tx, checksumNumber) != sum(tx, sealedBuckets()...) {
		return nil, errors.New("its checksum does not match")
	}
	for _, kind := range addedKinds() {
		if err := checkAdded(tx, kind); err != nil {
			return nil, err
		}
	}
	return catalog.Decode(number(tx, revisionNumber), documents(tx))
}

// checkAdded checks the documents of a kind that older releases do not know.
func checkAdded(tx *bbolt.Tx, kind string) error {
	there, sealed := tx.Bucket([]byte(kind)) != nil, number(tx, checksumOf+kind)
	switch {
	case !there && sealed != 0:
		return fmt.Errorf("bucket %q is missing", kind)
	case there && sealed != sum(tx, kind):
		return fmt.Errorf("the checksum of bucket %q does not match", kind)
	}
	return nil
}

// save replaces the catalog from, which the file must hold, by to, adds entries to the audit
// log, and keeps a reply unless it is nil.
func save(db *bbolt.DB, from, to *serving.Catalog, entries []serving.AuditEntry, reply *serving.NamedReply) error {
	docs, err := catalog.Diff(from, to)
	if err != nil {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		// An earlier commit may have failed after its last page was written.
		if at := number(tx, revisionNumber); at != from.Revision {
			return fmt.Errorf("the file is at revision %d, and %d was expected; restart topsail to go on from what is in the file", at, from.Revision)
		}
		if err := followUsage(tx, docs, to.Revision, now()); err != nil {
			return err
		}
		for _, doc := range docs {
			if err := putDocument(tx, doc); err != nil {
				return err
			}
		}
		return errors.Join(putNumber(tx, revisionNumber, to.Revision), seal(tx), addEntries(tx, entries), addReply(tx, reply))
	})
}

func putDocument(tx *bbolt.Tx, doc catalog.Document) error {
	b, err := tx.CreateBucketIfNotExists([]byte(doc.Kind))
	if err != nil {
		return err
	}
	if doc.JSON == nil {
		return b.Delete([]byte(doc.Key))
	}
	return b.Put([]byte(doc.Key), doc.JSON)
}

// documents yields the documents; their JSON is valid until tx ends.
func documents(tx *bbolt.Tx) iter.Seq[catalog.Document] {
	return func(yield func(catalog.Document) bool) {
		for _, kind := range append(firstKinds(), addedKinds()...) {
			b := tx.Bucket([]byte(kind))
			if b == nil {
				continue
			}
			c := b.Cursor()
			for k, v := c.First(); k != nil; k, v = c.Next() {
				if !yield(catalog.Document{Kind: kind, Key: string(k), JSON: v}) {
					return
				}
			}
		}
	}
}

func number(tx *bbolt.Tx, name string) uint64 {
	return numberIn(tx.Bucket([]byte(metaBucket)), name)
}

// numberIn is 0 where there is none.
func numberIn(b *bbolt.Bucket, name string) uint64 {
	v := b.Get([]byte(name))
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

func putNumber(tx *bbolt.Tx, name string, n uint64) error {
	return tx.Bucket([]byte(metaBucket)).Put([]byte(name), binary.BigEndian.AppendUint64(nil, n))
}

// seal is the last step of every write of what the checksums cover.
func seal(tx *bbolt.Tx) error {
	for _, kind := range addedKinds() {
		if tx.Bucket([]byte(kind)) == nil {
			continue
		}
		if err := putNumber(tx, checksumOf+kind, sum(tx, kind)); err != nil {
			return err
		}
	}
	return putNumber(tx, checksumNumber, sum(tx, sealedBuckets()...))
}

// sum is a CRC-32C over buckets, with lengths, so that what moves from one key or value
// to the next shows.
func sum(tx *bbolt.Tx, buckets ...string) uint64 {
	crc, table := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	add := func(b []byte) {
		crc = crc32.Update(crc, table, binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		crc = crc32.Update(crc, table, b)
	}
	for _, name := range buckets {
		add([]byte(name))
		c := tx.Bucket([]byte(name)).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if name != metaBucket || string(k) != checksumNumber {
				add(k)
				add(v)
			}
		}
	}
	return uint64(crc)
}
