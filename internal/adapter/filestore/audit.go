package filestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/internal/adapter/stored"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// auditBucket has the entries of the audit log by number, 8 bytes each, without gaps but for those
// that were damaged.
const auditBucket = "audit"

// audit is the entries of a change, none where it has no author.
func audit(by serving.Author, from, to *serving.Catalog) ([]serving.AuditEntry, error) {
	if by == (serving.Author{}) {
		return nil, nil
	}
	return catalog.Audit(by, from, to, time.Now())
}

// AddAudit adds an entry to the audit log, durably, and gives it an ID. The oldest
// entries go. Of one that is too large, the objects before and after are not kept.
func (s *Store) AddAudit(ctx context.Context, entry serving.AuditEntry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	err := s.update(func(t *tx) error { return addEntries(t, []serving.AuditEntry{entry}) })
	if err != nil {
		return fmt.Errorf("add to the audit log: %w", err)
	}
	if entry.Kind == "backup" {
		s.noteBackup()
	}
	return nil
}

// AuditLog lists entries, the newest first. It fails with catalog.ErrInvalid where
// query.Before is no ID.
func (s *Store) AuditLog(ctx context.Context, query serving.AuditQuery) (found []serving.AuditEntry, err error) {
	before, err := parseEntryID(query.Before)
	if err != nil {
		return nil, err
	}
	err = s.view(func(t *tx) error {
		found, err = findEntries(ctx, t, before, query)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return found, nil
}

// Closed is the audit log of a file that no process has open.
type Closed string

// AuditLog is Store.AuditLog.
func (path Closed) AuditLog(ctx context.Context, query serving.AuditQuery) (found []serving.AuditEntry, err error) {
	db, err := openToRead(string(path))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	err = db.View(func(raw *bbolt.Tx) error {
		found, err = findEntries(ctx, newTx(raw, func(string, []byte) {}), 0, query)
		return err
	})
	return found, err
}

func addEntries(t *tx, entries []serving.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	b, err := t.make(auditBucket)
	if err != nil {
		return err
	}
	last, _ := b.cursor().last()
	number := entryNumber(last)
	for _, e := range entries {
		text, err := stored.EncodeEntry(e)
		if err != nil {
			return err
		}
		number++
		if err := b.put(entryKey(number), text); err != nil {
			return err
		}
	}
	return forgetEntries(b, number)
}

// forgetEntries removes those that are too many, given the number of the last.
func forgetEntries(b *bucket, last uint64) error {
	for {
		first, _ := b.cursor().first()
		if first == nil || entryNumber(first)+serving.MaxAudit > last {
			return nil
		}
		if err := b.delete(first); err != nil {
			return err
		}
	}
}

// findEntries goes back from an entry, or from the newest with 0.
func findEntries(ctx context.Context, t *tx, before uint64, query serving.AuditQuery) (found []serving.AuditEntry, err error) {
	wanted := stored.NewFilter(query)
	b := t.bucket(auditBucket)
	if b == nil {
		return nil, context.Cause(ctx)
	}
	c := b.cursor()
	for k, text := entryBefore(c, before); k != nil && len(found) < query.Limit; k, text = c.prev() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if e, ok := wanted.Decode(entryID(entryNumber(k)), text); ok {
			found = append(found, e)
		}
	}
	return found, context.Cause(ctx)
}

func entryBefore(c *cursor, before uint64) (k, text []byte) {
	if before == 0 {
		return c.last()
	}
	if k, _ := c.seek(entryKey(before)); k == nil {
		return c.last()
	}
	return c.prev()
}

func entryKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// entryNumber is 0 for what is no key of an entry.
func entryNumber(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// entryID has as many digits for each number, so that IDs are in the order of numbers.
func entryID(number uint64) string { return fmt.Sprintf("%016x", number) }

// parseEntryID is 0 for no ID.
func parseEntryID(id string) (uint64, error) {
	if id == "" {
		return 0, nil
	}
	number, err := strconv.ParseUint(id, 16, 64)
	if err != nil || number == 0 || entryID(number) != id {
		return 0, fmt.Errorf("%w: %.40q is not the id of an audit entry; take it from the list", catalog.ErrInvalid, id)
	}
	return number, nil
}
