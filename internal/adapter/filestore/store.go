// Package filestore keeps the state of local mode in one file, topsail.db in the
// data directory, with its last good copies beside it: apps, models, versions, links, current versions and keys, the audit
// log, the lease of query ids, and what selection policies have learned. It is bbolt with one JSON document per object; what
// changes may do is decided by serving/catalog, and this package makes the result durable.
// All values have checksums: what is damaged is found, and said (Condition).
//
// Readers never touch the file: they share the current immutable snapshot. Writers
// take turns. A write returns after its fsync, and is seen by readers from then on.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// FileName is the one file of the state in the data directory.
const FileName = "topsail.db"

// Store is an open data directory. All methods may be called concurrently.
type Store struct {
	path    string
	db      *bbolt.DB
	log     *slog.Logger
	health  health
	writing chan struct{} // the write lock: holds a token while a goroutine writes
	current atomic.Pointer[snapshot]
}

// Open opens the data directory dir, and makes it and its file where they do not
// exist. It fails within a second when another process has it open. Close the
// Store to let the next one in.
func Open(dir string, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if err := notForgotten(path); err != nil {
		return nil, err
	}
	db, torn, err := openFile(path)
	if err != nil {
		return nil, explain(path, err)
	}
	s := &Store{path: path, db: db, log: log, writing: make(chan struct{}, 1)}
	cat, found, err := s.loadOrCreate()
	if err != nil {
		return nil, explain(path, errors.Join(err, db.Close()))
	}
	if torn {
		found = append(found, tornMeta)
		s.noteTorn()
	}
	for _, damage := range found {
		s.noteDamage(damage)
	}
	s.current.Store(newSnapshot(cat))
	s.noteBackup()
	log.Info("opened the data directory", "file", path, "revision", cat.Revision, "apps", len(cat.Apps), "models", len(cat.Models))
	return s, nil
}

// Close waits for a write in progress. Later writes fail; snapshots stay valid,
// and a Watch goes on until its context ends.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close the data directory: %w", err)
	}
	return nil
}

// Catalog is the current snapshot; it takes no lock.
func (s *Store) Catalog() *serving.Catalog { return s.current.Load().catalog }

// Apply makes one change durable and returns the catalog with it; see
// catalog.Apply for ifRevision and the errors. Where the change asks for what is
// already so, nothing is written. After an error of the file itself the change may
// be in it or not; the next Open tells. What a catalog.Signed change does goes into the
// audit log, with the change or not at all.
func (s *Store) Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error) {
	return s.write(ctx, catalog.Author(change), func(cat *serving.Catalog) (*serving.Catalog, error) {
		return catalog.Apply(cat, change, ifRevision)
	})
}

// MergeFile merges the objects of the configuration file as one change; see
// catalog.Merge for the rules. The report is for the log. In the audit log, the change
// is by "file".
func (s *Store) MergeFile(ctx context.Context, apps []serving.App, versions []serving.Version, current map[string]string) (catalog.Report, error) {
	var report catalog.Report
	_, err := s.write(ctx, serving.Author{Who: serving.ByFile}, func(cat *serving.Catalog) (next *serving.Catalog, err error) {
		next, report, err = catalog.Merge(cat, apps, versions, current)
		return next, err
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// LeaseQueryIDs returns the number of a block of query ids that was never leased
// before and never will be again: 1, then 2, and so on, across restarts.
func (s *Store) LeaseQueryIDs(ctx context.Context) (block uint32, err error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.unlock()
	err = s.update(func(t *tx) error {
		last := t.number(leaseNumber)
		if last >= math.MaxUint32 {
			return errors.New("all blocks have been leased")
		}
		block = uint32(last) + 1
		return t.putNumber(leaseNumber, last+1)
	})
	if err != nil {
		return 0, fmt.Errorf("lease query ids: %w", err)
	}
	return block, nil
}

// write makes what step makes of the current catalog durable and then current. An author
// goes into the audit log with it.
func (s *Store) write(ctx context.Context, by serving.Author, step func(*serving.Catalog) (*serving.Catalog, error)) (*serving.Catalog, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	cat := s.Catalog()
	next, err := step(cat)
	if err != nil || next == cat {
		return next, err
	}
	entries, err := audit(by, cat, next)
	if err != nil {
		return nil, err
	}
	if err := s.save(cat, next, entries); err != nil {
		return nil, fmt.Errorf("write revision %d to %s: %w", next.Revision, s.path, err)
	}
	s.publish(next)
	return next, nil
}

// lock acquires the write lock. Once a write has begun, it runs to its end.
func (s *Store) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("write: %w", context.Cause(ctx))
	}
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait to write: %w", context.Cause(ctx))
	}
}

func (s *Store) unlock() { <-s.writing }
