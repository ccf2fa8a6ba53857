package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/api"
)

// maxChanges bounds the changes that a report lists.
const maxChanges = 1000

// Restore makes the state that of a backup, which it reads from r, whole and checked before
// anything is changed. With dryRun nothing is; the report says what would be. It may be
// repeated: after one that fails, too. It fails with api.ErrBackupInvalid where r is not a good backup.
//
// Where the store has an audit log, the entries of both are kept.
func (s *Service) Restore(ctx context.Context, r io.Reader, by serving.Author, dryRun bool) (report api.Restored, err error) {
	file, err := os.CreateTemp(s.Spool, temporary)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	size, err := io.Copy(file, r)
	if err != nil {
		return report, err
	}
	f, err := Open(file, size)
	if err != nil {
		return report, err
	}
	known, err := read(f)
	if err != nil {
		return report, fmt.Errorf("%w: %w", api.ErrBackupInvalid, err)
	}
	if report, err = s.compare(ctx, f, known, by); err != nil || dryRun {
		return report, err
	}
	// What has begun is finished, should the client have left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreWithin)
	defer cancel()
	if err := s.restore(ctx, f, known, by); err != nil {
		return report, fmt.Errorf("the backup is restored in part; restore it again: %w", err)
	}
	report.Done = true
	return report, nil
}

// restoreWithin bounds the part of a restoration that changes something.
const restoreWithin = time.Hour

// content is a backup but for its states, which may be many.
type content struct {
	catalog *serving.Catalog
	usage   []serving.Usage
	entries []serving.AuditEntry
}

func read(f *File) (*content, error) {
	var docs []catalog.Document
	c := &content{}
	for item, err := range f.Items() {
		switch {
		case err != nil:
			return nil, err
		case item.Document != nil:
			docs = append(docs, catalog.Document{Kind: item.Document.Kind, Key: item.Document.Key, JSON: item.Document.JSON})
		case item.Usage != nil:
			c.usage = append(c.usage, item.Usage.usage())
		case item.Entry != nil:
			c.entries = append(c.entries, *item.Entry)
		}
	}
	var err error
	c.catalog, err = catalog.Decode(f.Revision, slices.Values(docs))
	return c, err
}

// compare says what the backup changes.
func (s *Service) compare(ctx context.Context, f *File, c *content, by serving.Author) (report api.Restored, err error) {
	now, err := s.Store.Apply(ctx, catalog.All{}, 0)
	if err != nil {
		return report, err
	}
	next, err := catalog.Apply(now, catalog.Signed{Change: catalog.Restore{To: c.catalog}, By: by}, 0)
	if err != nil {
		return report, err
	}
	changes, err := catalog.Audit(by, now, next, time.Now())
	if err != nil {
		return report, err
	}
	report = api.Restored{
		Name: Name(f.Made), Made: f.Made, Release: f.Release, Mode: f.Mode, Revision: f.Revision,
		States: f.States, Usage: f.Usage, Entries: f.Entries, Changed: len(changes), Changes: []api.RestoredChange{}, Missing: []string{}, Warnings: []string{},
	}
	for _, e := range changes[:min(len(changes), maxChanges)] {
		report.Changes = append(report.Changes, api.RestoredChange{Action: e.Action, Kind: e.Kind, Name: e.Name})
	}
	there, err := s.digests(ctx)
	if err != nil {
		return report, err
	}
	for _, b := range f.Bundles {
		switch {
		case there[b.Digest]:
		case b.Included:
			report.Bundles++
		default:
			report.Missing = append(report.Missing, b.Digest)
		}
	}
	report.Warnings = warnings(now, c.catalog, f, &report, by)
	return report, nil
}

func warnings(now, then *serving.Catalog, f *File, report *api.Restored, by serving.Author) []string {
	list := []string{}
	if len(report.Missing) > 0 {
		list = append(list, fmt.Sprintf("%d bundles are neither in the backup nor here: versions of them cannot start until they are uploaded (topsail artifact push)", len(report.Missing)))
	}
	named := func(cat *serving.Catalog) bool {
		for _, k := range cat.Keys {
			if k.Name == by.Who {
				return true
			}
		}
		return false
	}
	switch {
	case named(now) && !named(then):
		list = append(list, fmt.Sprintf("the key %q of this request is not in the backup, and will not be valid afterwards", by.Who))
	case len(now.Keys) == 0 && len(then.Keys) > 0:
		list = append(list, "the backup has keys: from then on requests need one")
	}
	if len(then.Keys) > 0 {
		list = append(list, fmt.Sprintf("keys that were revoked since %s become valid again: revoke them again", f.Made.Format(time.DateTime)))
	}
	return list
}

func (s *Service) digests(ctx context.Context) (map[string]bool, error) {
	stored, err := s.Bundles.Stored(ctx)
	there := make(map[string]bool, len(stored))
	for _, b := range stored {
		there[b.Digest] = true
	}
	return there, err
}

// restore brings everything back, first of all what versions need.
func (s *Service) restore(ctx context.Context, f *File, c *content, by serving.Author) error {
	if err := s.restoreBundles(ctx, f); err != nil {
		return err
	}
	if err := s.Store.SkipQueryIDs(ctx, f.QueryIDBlock); err != nil {
		return err
	}
	if _, err := s.Store.Apply(ctx, catalog.Signed{Change: catalog.Restore{To: c.catalog}, By: by}, 0); err != nil {
		return err
	}
	if err := s.restoreStates(ctx, f); err != nil {
		return err
	}
	if err := s.Store.RestoreUsage(ctx, c.usage); err != nil {
		return err
	}
	return s.restoreEntries(ctx, c.entries)
}

func (s *Service) restoreBundles(ctx context.Context, f *File) error {
	there, err := s.digests(ctx)
	if err != nil {
		return err
	}
	for _, b := range f.Bundles {
		if !b.Included || there[b.Digest] {
			continue
		}
		archive, err := f.Bundle(b.Digest)
		if err != nil {
			return err
		}
		if _, _, err := s.Bundles.Put(ctx, archive); err != nil {
			return fmt.Errorf("bundle %s: %w", b.Digest, err)
		}
	}
	return nil
}

// restoreStates also sets aside those that were learned since.
func (s *Service) restoreStates(ctx context.Context, f *File) error {
	then := map[serving.StateKey]bool{}
	for item, err := range f.Items() {
		if err != nil {
			return err
		}
		if item.State == nil {
			continue
		}
		then[item.State.key()] = true
		if err := s.putState(ctx, item.State.key(), item.State.Text); err != nil {
			return err
		}
	}
	var since []serving.StateKey
	err := s.Store.EachState(ctx, func(key serving.StateKey, _ []byte) error {
		if !then[key] {
			since = append(since, key)
		}
		return nil
	})
	for _, key := range since {
		if err == nil {
			err = s.dropState(ctx, key)
		}
	}
	return err
}

// attempts bounds how often a state is tried that gateways change meanwhile.
const attempts = 100

func (s *Service) putState(ctx context.Context, key serving.StateKey, text []byte) error {
	return s.retry(ctx, key, func(now []byte, revision uint64) error {
		if bytes.Equal(now, text) {
			return nil
		}
		_, err := s.Store.SwapState(ctx, key, revision, text)
		return err
	})
}

func (s *Service) dropState(ctx context.Context, key serving.StateKey) error {
	return s.retry(ctx, key, func(now []byte, revision uint64) error {
		if now == nil {
			return nil
		}
		_, err := s.Store.SetStateAside(ctx, key, revision, "learned after the backup that was restored")
		return err
	})
}

func (s *Service) retry(ctx context.Context, key serving.StateKey, do func(now []byte, revision uint64) error) (err error) {
	for range attempts {
		now, revision, loadErr := s.Store.LoadState(ctx, key)
		if loadErr != nil {
			return loadErr
		}
		if err = do(now, revision); !errors.Is(err, serving.ErrStateConflict) {
			return err
		}
	}
	return err
}

// restoreEntries merges the entries of a backup with those that are there, by time.
func (s *Service) restoreEntries(ctx context.Context, then []serving.AuditEntry) error {
	now, err := s.entries(ctx)
	if err != nil {
		return err
	}
	type one struct {
		at                            int64
		who, action, kind, name, from string
		revision                      uint64
	}
	known := map[one]bool{}
	all := slices.Concat(then, now)
	all = slices.DeleteFunc(all, func(e serving.AuditEntry) bool {
		key := one{e.At.UnixNano(), e.Who, e.Action, e.Kind, e.Name, e.From, e.Revision}
		twice := known[key]
		known[key] = true
		return twice
	})
	slices.SortStableFunc(all, func(a, b serving.AuditEntry) int { return a.At.Compare(b.At) })
	if len(all) == len(now) {
		return nil
	}
	for i := range all {
		all[i].ID = ""
	}
	return s.Store.RestoreAudit(ctx, all)
}
