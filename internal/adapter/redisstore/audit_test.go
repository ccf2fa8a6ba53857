package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/contract"
)

func TestAuditContract(t *testing.T) {
	contract.Audit(t, func(t *testing.T) (another, reopen func() contract.AuditStore) {
		cfg := config(t)
		another = func() contract.AuditStore { return open(t, cfg) }
		return another, another
	})
}

func signed(change catalog.Change) catalog.Signed {
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

// TestUnsignedIsLogged has the file and a leader change what nobody signed.
func TestUnsignedIsLogged(t *testing.T) {
	s := open(t, config(t))
	for range 2 { // the second time changes nothing
		if _, err := s.MergeFile(t.Context(), []serving.App{app("a", "m")}, []serving.Version{version("m", "1")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	id := version("m", "1").ModelID
	for _, change := range []catalog.Change{
		catalog.SetServing{id}, // routine
		catalog.SetPin{ID: id, Pin: &serving.Pin{Count: 2}},
		signed(catalog.SetPin{ID: id}),
		catalog.DeleteApp{Name: "a"},
	} {
		if _, err := s.ApplyFenced(t.Context(), change, 7); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ApplyFenced(t.Context(), signed(catalog.PutApp{App: app("b")}), 6); err == nil {
		t.Error("a leader that leads no longer has written")
	}
	wantLog(t, s,
		"delete app a by scheduler", "update version m:1 by anna", "update version m:1 by scheduler",
		"create version m:1 by file", "create model m by file", "create app a by file")
}

// TestRepeatedWrite repeats scripts whose answers were lost.
func TestRepeatedWrite(t *testing.T) {
	s := open(t, config(t))
	first := apply(t, s, signed(catalog.PutApp{App: app("a")}))
	now := s.current.Load()
	next := now.at.next(first.Revision + 1)
	c := commit{entries: []any{`{"action":"delete","kind":"app","name":"a","who":"anna"}`}, fields: []any{"apps/a", ""}}
	for range 3 {
		if outcome, err := s.commit(t.Context(), now.at, next, c); outcome != done || err != nil {
			t.Fatalf("got %v and error %v", outcome, err)
		}
	}
	other := now.at.next(first.Revision + 1)
	if outcome, err := s.commit(t.Context(), now.at, other, c); outcome != moved || err != nil {
		t.Fatalf("got %v and error %v", outcome, err)
	}
	for range 3 {
		entry := `{"action":"restart","kind":"replica","name":"r","who":"anna"}`
		if _, err := s.run(t.Context(), s.scripts.audit, []string{s.keys.audit}, keptEntries, "the same name", entry); err != nil {
			t.Fatal(err)
		}
	}
	wantLog(t, s, "restart replica r by anna", "delete app a by anna", "create app a by anna")
}

// TestOddLog has something else in the place of the log: changes fail as a whole, and
// what nobody signed goes on. Entries that cannot be read are skipped.
func TestOddLog(t *testing.T) {
	cfg := config(t)
	s, d := open(t, cfg), dataOf(t, cfg)
	d.client.Set(t.Context(), s.keys.audit, "no stream", 0)
	if cat, err := s.Apply(t.Context(), signed(catalog.PutApp{App: app("a")}), 0); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || cat != nil {
		t.Errorf("got %v and error %v", cat, err)
	}
	if _, err := s.AuditLog(t.Context(), serving.AuditQuery{Limit: 1}); err == nil {
		t.Error("read a log from a text")
	}
	if cat := apply(t, s, putApp("b")); cat.Revision != 1 || len(cat.Apps) != 1 {
		t.Errorf("got %s", encode(t, cat))
	}
	d.client.Del(t.Context(), s.keys.audit)
	apply(t, s, signed(catalog.PutApp{App: app("a")}))
	d.client.Do(t.Context(), "xadd", s.keys.audit, "*", "write", "w", "entry", "{")
	d.client.Do(t.Context(), "xadd", s.keys.audit, "*", "other", "o")
	apply(t, s, signed(catalog.DeleteApp{Name: "a"}))
	wantLog(t, s, "delete app a by anna", "create app a by anna")
}

// TestEntryIDs compares the IDs of what came in one millisecond, and in later ones.
func TestEntryIDs(t *testing.T) {
	last := ""
	for _, stream := range []string{"1-1", "9-2", "10-0", "999999999999-9", "999999999999-10", "1700000000000-0"} {
		id := entryID(stream)
		if before, err := streamBefore(id); before != "("+stream || err != nil || id <= last {
			t.Errorf("%s has id %s after %s and is read by %s, error %v", stream, id, last, before, err)
		}
		last = id
	}
}
