package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// ErrFenced is that of the domain: the caller leads no longer.
var ErrFenced = serving.ErrFenced

// unfenced is the fence of those who need not lead.
const unfenced = ""

// Apply makes one change on the newest catalog in Redis, and returns the catalog
// with it; see catalog.Apply for ifRevision and the errors. The change is as durable
// as Redis is set up to be when Apply returns. Where the change asks for what is
// already so, nothing is written. While State has an alarm, Apply fails with it,
// with an ErrLost or otherwise; when Redis does not answer, Apply fails within
// seconds, and the change may have been made. What a catalog.Signed change does goes
// into the audit log, with the change or not at all.
func (s *Store) Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error) {
	return s.write(ctx, commit{fence: unfenced}, catalog.Author(change), func(cat *serving.Catalog) (*serving.Catalog, error) {
		return catalog.Apply(cat, change, ifRevision)
	})
}

// ApplyFenced is Apply for a leader with a fencing token. It fails with ErrFenced
// where a higher one has written. In the audit log, a change without an author
// is by "scheduler". A catalog.SetServing is not in it unless it is signed: it comes with
// every rollout and by itself, and would only hide what people have done.
func (s *Store) ApplyFenced(ctx context.Context, change catalog.Change, fence uint64) (*serving.Catalog, error) {
	return s.write(ctx, commit{fence: strconv.FormatUint(fence, 10)}, leader(change), func(cat *serving.Catalog) (*serving.Catalog, error) {
		return catalog.Apply(cat, change, 0)
	})
}

// leader is who signs a change that ApplyFenced makes.
func leader(change catalog.Change) serving.Author {
	if _, routine := change.(catalog.SetServing); routine {
		return serving.Author{}
	}
	return cmp.Or(catalog.Author(change), serving.Author{Who: byScheduler})
}

// byScheduler signs what no person does.
const byScheduler = "scheduler"

// MergeFile merges the objects of the configuration file as one change; see
// catalog.Merge for the rules. The report is for the log. In the audit log, the change
// is by "file".
func (s *Store) MergeFile(ctx context.Context, apps []serving.App, versions []serving.Version, current map[string]string) (catalog.Report, error) {
	var report catalog.Report
	_, err := s.write(ctx, commit{fence: unfenced}, serving.Author{Who: serving.ByFile}, func(cat *serving.Catalog) (next *serving.Catalog, err error) {
		next, report, err = catalog.Merge(cat, apps, versions, current)
		return next, err
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// write makes what step makes of the newest catalog the next one. Whenever another
// process is quicker it begins again, so in each round one process succeeds. An author
// goes into the audit log with it, and so does the fence of c.
func (s *Store) write(ctx context.Context, c commit, by serving.Author, step func(*serving.Catalog) (*serving.Catalog, error)) (*serving.Catalog, error) {
	if err := s.lock(ctx); err != nil {
		return nil, fmt.Errorf("wait to write: %w", err)
	}
	defer s.unlock()
	for {
		if _, err := s.refreshLocked(ctx); err != nil {
			return nil, fmt.Errorf("write: %w", err)
		}
		if err := s.othersLost(ctx); err != nil {
			return nil, fmt.Errorf("write: %w", err)
		}
		now := s.current.Load()
		cat, err := step(now.catalog)
		if err != nil || cat == now.catalog {
			return cat, err
		}
		docs, err := catalog.Diff(now.catalog, cat)
		if err != nil {
			return nil, err
		}
		if c.entries, err = audit(by, now.catalog, cat); err != nil {
			return nil, err
		}
		next := newSnapshot(cat, now.at.next(cat.Revision), now.epochHistory)
		c.clear, c.fields, c.usage = now.at.Epoch == "", documentFields(docs), s.usageKeys(docs)
		outcome, err := s.commit(ctx, now.at, next.at, c)
		switch {
		case err != nil:
			return nil, fmt.Errorf("write revision %d: %w", cat.Revision, err)
		case outcome == fenced:
			return nil, fmt.Errorf("write revision %d: %w", cat.Revision, ErrFenced)
		case outcome == done:
			s.publish(next)
			return cat, nil
		}
	}
}

// commit is what write.lua does besides moving the catalog from one position to
// the next.
type commit struct {
	fence   string
	clear   bool     // drop all fields first
	entries []any    // of the audit log, as texts
	fields  []any    // names and values in turns; an empty value drops the field
	usage   []string // the keys of the usage of the apps and versions among the fields
}

// commit returns done, moved or fenced.
func (s *Store) commit(ctx context.Context, from, to position, c commit) (outcome any, err error) {
	before := "keep"
	if c.clear {
		before = "clear"
	}
	args := append([]any{
		from.Epoch, from.Revision, from.Write, to.Epoch, to.Revision, to.Write,
		c.fence, keptChanges, before, keptEntries, len(c.entries), time.Now().UnixMilli(),
	}, c.entries...)
	args = append(append(args, formatField, format), c.fields...)
	keys := append([]string{s.keys.catalog, s.keys.log, s.keys.fence, s.keys.audit}, c.usage...)
	return s.run(ctx, s.scripts.write, keys, args...)
}

func documentFields(docs []catalog.Document) []any {
	fields := make([]any, 0, 2*len(docs))
	for _, doc := range docs {
		fields = append(fields, doc.Kind+"/"+doc.Key, doc.JSON)
	}
	return fields
}
