package backup

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/api"
)

// Store is what is backed up.
type Store interface {
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	LeaseQueryIDs(ctx context.Context) (block uint32, err error)
	SkipQueryIDs(ctx context.Context, past uint32) error

	EachState(ctx context.Context, fn func(key serving.StateKey, text []byte) error) error
	LoadState(ctx context.Context, key serving.StateKey) (text []byte, revision uint64, err error)
	SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (uint64, error)
	SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (as string, err error)

	UsageOf(ctx context.Context, objects []serving.UsageKey) ([]serving.Usage, error)
	RestoreUsage(ctx context.Context, all []serving.Usage) error

	AuditLog(ctx context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error)
	RestoreAudit(ctx context.Context, entries []serving.AuditEntry) error
}

// Bundles are those that are backed up with it.
type Bundles interface {
	Stored(ctx context.Context) ([]bundle.Stored, error)
	Open(ctx context.Context, digest string) (io.ReadSeekCloser, error)
	Put(ctx context.Context, r io.Reader) (a api.Artifact, created bool, err error)
}

// Service makes and restores backups of one Topsail.
type Service struct {
	Store   Store
	Bundles Bundles
	Mode    string // "local" or "cluster"
	Release string
	Spool   string // folder for backups that are put together or checked
}

// temporary begins the names of files in the spool, which its owner removes when it starts.
const temporary = "upload-backup-*"

// Make puts a backup together: all that was acknowledged before it began. The catalog is of
// one moment; states and usage are of that moment, or of one before it ends. Close it.
func (s *Service) Make(ctx context.Context, bundles bool) (api.Backup, error) {
	cat, err := s.Store.Apply(ctx, catalog.All{}, 0) // the newest, wherever it was changed
	if err != nil {
		return nil, err
	}
	a := &Archive{bundles: s.Bundles, Contents: Contents{
		Format: format, Made: time.Now().UTC().Truncate(time.Millisecond), Release: s.Release, Mode: s.Mode, Revision: cat.Revision,
		Apps: len(cat.Apps), Models: len(cat.Models), Keys: len(cat.Keys), Streams: len(cat.Streams),
	}}
	if a.QueryIDBlock, err = s.Store.LeaseQueryIDs(ctx); err != nil {
		return nil, err
	}
	if a.state, err = os.CreateTemp(s.Spool, temporary); err != nil {
		return nil, err
	}
	if err := s.writeState(ctx, a, cat); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	stored, err := s.Bundles.Stored(ctx)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	for _, b := range stored {
		if bundles {
			if err := a.compare(ctx, b.Digest); err != nil {
				return nil, errors.Join(err, a.Close())
			}
		}
		a.Bundles = append(a.Bundles, Bundle{b.Digest, b.Size, bundles})
	}
	a.Bundles = append(a.Bundles, missing(cat, stored)...)
	slices.SortFunc(a.Bundles, func(x, y Bundle) int { return strings.Compare(x.Digest, y.Digest) })
	return a, nil
}

// missing are the bundles of versions that are not stored: a restoration says so, where they are
// not there either.
func missing(cat *serving.Catalog, stored []bundle.Stored) (list []Bundle) {
	there := map[string]bool{}
	for _, b := range stored {
		there[b.Digest] = true
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			if c := v.Container; c.Bundle != "" && c.BundleURL == "" && !there[c.Bundle] {
				there[c.Bundle] = true
				list = append(list, Bundle{Digest: c.Bundle})
			}
		}
	}
	return list
}

// writeState writes the items, and counts them.
func (s *Service) writeState(ctx context.Context, a *Archive, cat *serving.Catalog) error {
	file := bufio.NewWriter(a.state)
	text := gzip.NewWriter(file)
	lines := json.NewEncoder(text)
	docs, err := catalog.Diff(&serving.Catalog{}, cat)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := lines.Encode(Item{Document: &Document{doc.Kind, doc.Key, doc.JSON}}); err != nil {
			return err
		}
	}
	err = s.Store.EachState(ctx, func(key serving.StateKey, text []byte) error {
		if cat.Apps[key.App] == nil {
			return nil
		}
		a.States++
		return lines.Encode(Item{State: &State{key.App, key.Kind, key.User, key.Context, text}})
	})
	if err != nil {
		return err
	}
	usage, err := s.Store.UsageOf(ctx, a.objects(cat))
	if err != nil {
		return err
	}
	for _, one := range usage {
		a.Usage++
		if err := lines.Encode(Item{Usage: usageItem(one)}); err != nil {
			return err
		}
	}
	entries, err := s.entries(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Revision > cat.Revision { // of a change since
			continue
		}
		a.Entries++
		if err := lines.Encode(Item{Entry: &e}); err != nil {
			return err
		}
	}
	return errors.Join(text.Close(), file.Flush())
}

// objects are those that usage is counted of.
func (a *Archive) objects(cat *serving.Catalog) (objects []serving.UsageKey) {
	for name := range cat.Apps {
		objects = append(objects, serving.UsageKey{App: name})
	}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			a.Versions++
			objects = append(objects, serving.UsageKey{ModelID: v.ModelID})
		}
	}
	return objects
}

// entryPage is how many entries of the audit log are read at once.
const entryPage = 1000

// entries is the audit log, the oldest first.
func (s *Service) entries(ctx context.Context) (all []serving.AuditEntry, err error) {
	for query := (serving.AuditQuery{Limit: entryPage}); ; {
		page, err := s.Store.AuditLog(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < entryPage {
			slices.Reverse(all)
			return all, nil
		}
		query.Before = page[len(page)-1].ID
	}
}
