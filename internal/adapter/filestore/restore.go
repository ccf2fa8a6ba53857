package filestore

import (
	"context"
	"fmt"
	"math"

	"github.com/topsail-serving/topsail/internal/adapter/stored"
	"github.com/topsail-serving/topsail/serving"
)

// EachState calls fn with every selection state, all as of one moment. It ends with the first
// error of fn, or with ctx.
func (s *Store) EachState(ctx context.Context, fn func(key serving.StateKey, text []byte) error) error {
	now := now()
	return s.view(func(t *tx) error {
		l, there := openLearned(t)
		if !there {
			return nil
		}
		c := l.states.cursor()
		for k, v := c.first(); k != nil; k, v = c.next() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			key, err := serving.ParseStateKey(string(k))
			found := decodeState(v)
			if err != nil || found.revision == 0 || expired(found.seen, now) {
				continue
			}
			if err := fn(key, found.text); err != nil {
				return err
			}
		}
		return nil
	})
}

// RestoreUsage sets the usage of objects that are in the catalog, each followed by its stages,
// in place of what was counted. What is reported of them as they were before does not count.
func (s *Store) RestoreUsage(ctx context.Context, all []serving.Usage) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	cat := s.Catalog()
	err := s.update(func(t *tx) error {
		u, err := makeUsage(t)
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.Key.App != "" && cat.Apps[one.Key.App] == nil || one.Key.App == "" && cat.Version(one.Key.ModelID) == nil {
				continue
			}
			c := count{}.add(one)
			if one.Key.Stage == "" {
				c.Since, c.Revision = one.Since, cat.Revision
				if err := u.forget(one.Key.String()); err != nil {
					return err
				}
			}
			if err := u.put(one.Key.String(), c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore usage: %w", err)
	}
	return nil
}

// RestoreAudit replaces the audit log by entries, the oldest first.
func (s *Store) RestoreAudit(ctx context.Context, entries []serving.AuditEntry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	err := s.update(func(t *tx) error {
		b, err := t.make(auditBucket)
		if err != nil {
			return err
		}
		if err := b.clear(); err != nil {
			return err
		}
		for i, e := range entries[max(0, len(entries)-serving.MaxAudit):] {
			text, err := stored.EncodeEntry(e)
			if err != nil {
				return err
			}
			if err := b.put(entryKey(uint64(i)+1), text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore the audit log: %w", err)
	}
	return nil
}

// SkipQueryIDs has later leases begin after a block.
func (s *Store) SkipQueryIDs(ctx context.Context, past uint32) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	err := s.update(func(t *tx) error {
		last := max(t.number(leaseNumber), min(uint64(past), math.MaxUint32))
		return t.putNumber(leaseNumber, last)
	})
	if err != nil {
		return fmt.Errorf("skip query ids: %w", err)
	}
	return nil
}
