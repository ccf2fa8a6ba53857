// Package contract has one suite of tests for each seam between Topsail and the
// technology under it. Every implementation of a seam, local or on a cluster,
// runs the whole suite and nothing of it may be left out.
package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// CatalogStore is the seam of apps, models, versions, links, current versions, keys and streams.
type CatalogStore interface {
	// Catalog is the newest snapshot that this store knows of: at the least what
	// its own last Apply returned.
	Catalog() *serving.Catalog
	// Watch calls back with the current snapshot at once and then with newer ones,
	// one call at a time and never going back, until ctx ends. It may skip
	// snapshots that are no longer the newest.
	Watch(ctx context.Context, fn func(*serving.Catalog)) error
	// Apply makes one change, by the rules of catalog.Apply, on the newest catalog
	// that anybody has made. The change is durable when Apply returns.
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	// MergeFile merges the objects of a configuration file as one change, by the rules of
	// catalog.Merge. Where the file says what is already so, nothing changes.
	MergeFile(ctx context.Context, apps []serving.App, versions []serving.Version, current map[string]string) (catalog.Report, error)
}

// Catalog runs the suite. open makes an empty store that the test closes at its
// end; reopen closes that store and opens another one on the same data.
func Catalog(t *testing.T, open func(t *testing.T) (store CatalogStore, reopen func() CatalogStore)) {
	tests := []struct {
		name string
		run  func(s suite)
	}{
		{"an empty store", suite.empty},
		{"apps", suite.apps},
		{"versions", suite.versions},
		{"deleted versions", suite.deletedVersions},
		{"links", suite.links},
		{"current versions", suite.currentVersions},
		{"serving versions", suite.servingVersions},
		{"scales", suite.scales},
		{"pins", suite.pins},
		{"keys", suite.keys},
		{"streams", suite.streams},
		{"previous versions", suite.previous},
		{"prepared versions", suite.prepared},
		{"what changes nothing", suite.noChange},
		{"what is invalid", suite.invalid},
		{"an ended context", suite.endedContext},
		{"conflicts", suite.conflicts},
		{"snapshots are immutable", suite.immutable},
		{"concurrent writers", suite.concurrentWriters},
		{"compare and swap", suite.compareAndSwap},
		{"watch", suite.watch},
		{"watch while writing", suite.watchWhileWriting},
		{"watch ends", suite.watchEnds},
		{"restart", suite.restart},
		{"a configuration file", suite.mergeFile},
		{"a thousand objects", suite.thousand},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store, reopen := open(t)
			test.run(suite{t, store, reopen})
		})
	}
}

// patience bounds every wait of the suite; nothing takes that long.
const patience = time.Minute

type suite struct {
	*testing.T
	store  CatalogStore
	reopen func() CatalogStore
}

// apply makes a change that must succeed and be current at once, one revision on.
func (s suite) apply(change catalog.Change) *serving.Catalog {
	s.Helper()
	before := s.store.Catalog().Revision
	cat, err := s.store.Apply(s.Context(), change, 0)
	if err != nil {
		s.Fatalf("%T: %v", change, err)
	}
	if cat.Revision != before+1 {
		s.Fatalf("%T: revision %d after %d", change, cat.Revision, before)
	}
	s.wantSame(cat, s.store.Catalog())
	return cat
}

// refuse makes a change that must fail with want and leave everything as it is.
func (s suite) refuse(want error, change catalog.Change) {
	s.Helper()
	before := s.store.Catalog()
	cat, err := s.store.Apply(s.Context(), change, 0)
	if !errors.Is(err, want) || cat != nil {
		s.Fatalf("%#v: got %v and error %v, want %v", change, cat, err, want)
	}
	s.wantSame(before, s.store.Catalog())
}

// keep makes a change that asks for what is already so.
func (s suite) keep(change catalog.Change) {
	s.Helper()
	before := s.store.Catalog()
	cat, err := s.store.Apply(s.Context(), change, 0)
	if err != nil {
		s.Fatalf("%T: %v", change, err)
	}
	s.wantSame(before, cat)
	s.wantSame(before, s.store.Catalog())
}

func (s suite) wantSame(want, got *serving.Catalog) {
	s.Helper()
	if text(want) != text(got) {
		s.Fatalf("got catalog\n%s\nwant\n%s", text(got), text(want))
	}
}

// wantLinks compares the linked models of an app.
func (s suite) wantLinks(app string, models ...string) {
	s.Helper()
	if got := s.store.Catalog().Apps[app].Models; !slices.Equal(got, models) {
		s.Fatalf("app %q links %v, want %v", app, got, models)
	}
}

func (s suite) wantCurrent(model, version string) {
	s.Helper()
	if got := s.store.Catalog().Models[model].Current; got != version {
		s.Fatalf("model %q is at %q, want %q", model, got, version)
	}
}

// text is all of a catalog, for comparing and for noticing writes to a snapshot.
func text(cat *serving.Catalog) string {
	b, err := json.Marshal(cat)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func app(name string, models ...string) serving.App {
	return serving.App{
		Name:          name,
		Description:   "about \u00e9",
		InputType:     serving.Doubles,
		DefaultOutput: "-1.0",
		SLO:           serving.Duration(20 * time.Millisecond),
		Models:        models,
		Cache:         serving.CacheSpec{Round: 0.25, TTL: serving.Duration(time.Minute)},
	}
}

func version(model, name string) serving.Version {
	return serving.Version{
		ModelID: serving.ModelID{Model: model, Version: name}, Description: "the best so far",
		InputType: serving.Doubles,
		Labels:    []string{"a label"},
		Replicas:  1,
		Batch:     serving.BatchSpec{Strategy: "fixed", MaxSize: 8, Delay: serving.Duration(time.Millisecond)},
		Container: serving.Container{Command: []string{"python", "m.py"}, Env: map[string]string{"K": "v", "L": "w"}},
	}
}

func numbered(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }
