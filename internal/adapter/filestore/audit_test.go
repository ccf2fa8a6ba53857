package filestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

func signed(change catalog.Change) catalog.Change {
	return catalog.Signed{Change: change, By: serving.Author{Who: "anna"}}
}

// wantLog compares the audit log, the newest first.
func wantLog(t testing.TB, s *Store, words ...string) {
	t.Helper()
	entries, err := s.AuditLog(t.Context(), serving.AuditQuery{Limit: 1000})
	if err != nil || len(entries) != len(words) {
		t.Fatalf("got %d entries and error %v, want %d", len(entries), err, len(words))
	}
	for i, e := range entries {
		if got := fmt.Sprintf("%s %s %s by %s", e.Action, e.Kind, e.Name, e.Who); got != words[i] {
			t.Errorf("entry %d: got %s, want %s", i, got, words[i])
		}
	}
}

func TestMergeIsLogged(t *testing.T) {
	s := open(t, t.TempDir())
	for range 2 { // the second time changes nothing
		if _, err := s.MergeFile(t.Context(), []serving.App{app("a", "m")}, []serving.Version{version("m", "1")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	wantLog(t, s, "create version m:1 by file", "create model m by file", "create app a by file")
}

// TestFailedWriteIsNotLogged has a write fail within its transaction.
func TestFailedWriteIsNotLogged(t *testing.T) {
	s := open(t, t.TempDir())
	apply(t, s, signed(catalog.PutApp{App: app("a")}))
	rewrite(t, s, func(in *tx) error { return in.putNumber(revisionNumber, 2) })
	if _, err := s.Apply(t.Context(), signed(catalog.PutApp{App: app("b")}), 0); err == nil {
		t.Fatal("written on top of another revision")
	}
	wantLog(t, s, "create app a by anna")
}

// TestOddEntries skips what it cannot read, and goes on from there.
func TestOddEntries(t *testing.T) {
	s := open(t, t.TempDir())
	apply(t, s, signed(catalog.PutApp{App: app("a")}))
	err := s.update(func(in *tx) error {
		b := in.bucket(auditBucket)
		return errors.Join(b.put(entryKey(2), []byte("{")), b.put(entryKey(3), nil))
	})
	require.NoError(t, err)
	apply(t, s, signed(catalog.DeleteApp{Name: "a"}))
	wantLog(t, s, "delete app a by anna", "create app a by anna")
}

// TestEntryIDs lets the log grow by one digit.
func TestEntryIDs(t *testing.T) {
	s := open(t, t.TempDir())
	var last string
	for i := range 20 {
		require.NoError(t, s.AddAudit(t.Context(), serving.AuditEntry{At: time.Unix(int64(i), 0), After: json.RawMessage(`{}`)}))
		newest, err := s.AuditLog(t.Context(), serving.AuditQuery{Limit: 1})
		if err != nil || len(newest) != 1 || newest[0].ID <= last {
			t.Fatalf("got %+v after id %s, error %v", newest, last, err)
		}
		last = newest[0].ID
	}
}

// BenchmarkApplySigned is BenchmarkApply with an audit log that is full.
func BenchmarkApplySigned(b *testing.B) {
	s := open(b, b.TempDir())
	var apps []serving.App
	for i := range 1000 {
		apps = append(apps, app(fmt.Sprintf("app-%d", i)))
	}
	if _, err := s.MergeFile(b.Context(), apps, nil, nil); err != nil {
		b.Fatal(err)
	}
	for range serving.MaxAudit / 1000 {
		entries := make([]serving.AuditEntry, 1000)
		require.NoError(b, s.update(func(in *tx) error { return addEntries(in, entries) }))
	}
	changed := app("b")
	b.ReportAllocs()
	for b.Loop() {
		changed.SLO += serving.Duration(time.Microsecond)
		if _, err := s.Apply(b.Context(), signed(catalog.PutApp{App: changed}), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAuditLog looks through a whole log, for what is not in it.
func BenchmarkAuditLog(b *testing.B) {
	s := open(b, b.TempDir())
	for range serving.MaxAudit / 1000 {
		entries := make([]serving.AuditEntry, 1000)
		for i := range entries {
			before := json.RawMessage(`{"name":"a","latency_slo":1000000}`)
			entries[i] = serving.AuditEntry{Who: "anna", Action: "update", Kind: "app", Name: "a", Before: before}
		}
		require.NoError(b, s.update(func(in *tx) error { return addEntries(in, entries) }))
	}
	b.ReportAllocs()
	for b.Loop() {
		if found, err := s.AuditLog(b.Context(), serving.AuditQuery{Kind: "key", Limit: 100}); err != nil || len(found) != 0 {
			b.Fatal(found, err)
		}
	}
}
