package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// AuditStore is the seam of the audit log, beside the catalog whose changes are in it.
type AuditStore interface {
	// Apply is that of CatalogStore. What a catalog.Signed change does is in the log
	// from the moment on that the change is made.
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	// AddAudit adds what is no change of the catalog, durably.
	AddAudit(ctx context.Context, entry serving.AuditEntry) error
	// AuditLog lists entries, the newest first. IDs are texts that grow. At least
	// serving.MaxAudit entries are kept, and not many more.
	AuditLog(ctx context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error)
}

// Audit runs the suite. open makes an empty store, which the test closes at its end:
// another returns it as another process has it, which may be the same one; reopen closes
// all of them and opens one on the same data.
func Audit(t *testing.T, open func(t *testing.T) (another, reopen func() AuditStore)) {
	tests := []struct {
		name string
		run  func(s audits)
	}{
		{"an empty log", audits.none},
		{"what a change does", audits.objects},
		{"no secrets", audits.secrets},
		{"who did not sign", audits.unsigned},
		{"what does not happen", audits.refused},
		{"what else happens", audits.added},
		{"what is too large", audits.large},
		{"pages", audits.pages},
		{"filters", audits.filters},
		{"what is no cursor", audits.cursors},
		{"an ended context", audits.endedContext},
		{"a restart", audits.restart},
		{"who deployed a version", audits.deployed},
		{"concurrent writers", audits.concurrentWriters},
		{"the oldest go", audits.bounded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another, reopen := open(t)
			test.run(audits{t, another(), another, reopen})
		})
	}
}

type audits struct {
	*testing.T
	store   AuditStore
	another func() AuditStore
	reopen  func() AuditStore
}

func anna() serving.Author { return serving.Author{Who: "anna", From: "10.0.0.7", Client: "curl/8"} }

func signed(change catalog.Change) catalog.Signed { return catalog.Signed{Change: change, By: anna()} }

func (s audits) apply(change catalog.Change) *serving.Catalog {
	s.Helper()
	cat, err := s.store.Apply(s.Context(), change, 0)
	if err != nil {
		s.Fatalf("%#v: %v", change, err)
	}
	return cat
}

func (s audits) add(entry serving.AuditEntry) {
	s.Helper()
	require.NoError(s, s.store.AddAudit(s.Context(), entry))
}

func (s audits) list(query serving.AuditQuery) []serving.AuditEntry {
	s.Helper()
	entries, err := s.another().AuditLog(s.Context(), query)
	if err != nil || len(entries) > query.Limit {
		s.Fatalf("%+v: got %d entries and error %v", query, len(entries), err)
	}
	return entries
}

// log is all entries, the newest first, in pages.
func (s audits) log() (all []serving.AuditEntry) {
	s.Helper()
	for query := (serving.AuditQuery{Limit: 1000}); ; {
		page := s.list(query)
		all = append(all, page...)
		if len(page) < query.Limit {
			break
		}
		query.Before = page[len(page)-1].ID
	}
	for i, e := range all {
		if e.ID == "" || i > 0 && e.ID >= all[i-1].ID {
			s.Fatalf("entry %d has id %q", i, e.ID)
		}
	}
	return all
}

// want compares the log, from the oldest to the newest, in words.
func (s audits) want(words ...string) {
	s.Helper()
	var got []string
	for _, e := range slices.Backward(s.log()) {
		got = append(got, fmt.Sprintf("%s %s %s by %s at %d", e.Action, e.Kind, e.Name, e.Who, e.Revision))
	}
	if !slices.Equal(got, words) {
		s.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(words, "\n"))
	}
}

func (s audits) none() { s.want() }

func (s audits) objects() {
	begun := time.Now().Add(-time.Minute) // the clock of a server may differ
	slow := app("a", "m")
	slow.SLO = serving.Duration(time.Second)
	key, _ := serving.NewKey()
	key.Name, key.Role = "ci", serving.RoleDeployer
	var cats []*serving.Catalog
	for _, change := range []catalog.Change{
		catalog.PutVersion{Version: version("m", "1")},
		catalog.PutApp{App: app("a", "m")},
		catalog.PutApp{App: slow},
		catalog.PutVersion{Version: version("m", "2")},
		catalog.AddKey{Key: *key},
		catalog.SetServing{id("m", "1")},
		catalog.RevokeKey{ID: key.ID},
		catalog.DeleteVersion{ID: id("m", "2")},
		catalog.DeleteVersion{ID: id("m", "1")}, // which takes the model and the link along
		catalog.DeleteApp{Name: "a"},
	} {
		cats = append(cats, s.apply(signed(change)))
	}
	s.want(
		"create model m by anna at 1", "create version m:1 by anna at 1",
		"create app a by anna at 2",
		"update app a by anna at 3",
		"update model m by anna at 4", "create version m:2 by anna at 4",
		"create key "+key.ID+" by anna at 5",
		"update model m by anna at 6",
		"delete key "+key.ID+" by anna at 7",
		"update model m by anna at 8", "delete version m:2 by anna at 8",
		"update app a by anna at 9", "delete model m by anna at 9", "delete version m:1 by anna at 9",
		"delete app a by anna at 10",
	)
	for _, e := range s.log() {
		if e.From != "10.0.0.7" || e.At.Before(begun) || time.Since(e.At) < -time.Minute {
			s.Errorf("got %+v", e)
		}
		if (e.Before == nil) != (e.Action == "create") || (e.After == nil) != (e.Action == "delete") {
			s.Errorf("%s %s %s from %s to %s", e.Action, e.Kind, e.Name, e.Before, e.After)
		}
	}
	var history []string
	for _, e := range s.list(serving.AuditQuery{Model: "m", Limit: 100}) {
		if e.Client != "curl/8" {
			s.Errorf("%s %s has the client %q", e.Action, e.Name, e.Client)
		}
		history = append(history, e.Action+" "+e.Name)
	}
	if want := "delete m:1, delete m, delete m:2, update m"; !strings.HasPrefix(strings.Join(history, ", "), want) || slices.Contains(history, "update m:1") {
		s.Errorf("the history of m is %v, want it to begin with %s", history, want)
	}
	updates := s.list(serving.AuditQuery{Kind: "app", Name: "a", Limit: 10})
	s.wantObject(updates[3].After, cats[1].Apps["a"])
	s.wantObject(updates[2].Before, cats[1].Apps["a"])
	s.wantObject(updates[2].After, cats[2].Apps["a"])
	s.wantObject(updates[0].Before, cats[8].Apps["a"])
}

// deployed has a version say who deployed it, also after a restart.
func (s audits) deployed() {
	by := serving.Author{Who: "anna", From: "10.0.0.7", Client: "curl/8"}
	v := version("m", "1")
	v.Deployed = &serving.Deployed{By: "another", Commit: "c1"}
	d := s.apply(catalog.Signed{Change: catalog.PutVersion{Version: v}, By: by}).Version(v.ModelID).Deployed
	if d == nil || time.Since(d.At) > time.Minute || *d != (serving.Deployed{By: "anna", At: d.At, Client: "curl/8", Commit: "c1"}) {
		s.Fatalf("it is deployed by %+v", d)
	}
	cat, err := s.reopen().Apply(s.Context(), catalog.PutVersion{Version: version("m", "2")}, 0)
	require.NoError(s, err)
	if got := cat.Version(v.ModelID).Deployed; got == nil || *got != *d {
		s.Errorf("after a restart it is deployed by %+v, want %+v", got, d)
	}
	if got := cat.Version(id("m", "2")).Deployed; got != nil {
		s.Errorf("what is not signed is deployed by %+v", got)
	}
}

// wantObject compares an object as it is stored.
func (s audits) wantObject(got json.RawMessage, object any) {
	s.Helper()
	want, err := json.Marshal(object)
	if err != nil || string(got) != string(want) {
		s.Errorf("got %s, want %s", got, want)
	}
}

func (s audits) secrets() {
	secret := version("m", "1")
	secret.Container.Env = map[string]string{"TOKEN": "hunter2-of-the-model"}
	key, text := serving.NewKey()
	key.Name, key.Role = "ci", serving.RoleAdmin
	s.apply(signed(catalog.Import{Versions: []serving.Version{secret}}))
	s.apply(signed(catalog.AddKey{Key: *key}))
	cat := s.apply(signed(catalog.RevokeKey{ID: key.ID}))
	if cat.Version(secret.ModelID).Container.Env["TOKEN"] != "hunter2-of-the-model" {
		s.Error("the catalog itself has lost it")
	}
	hash, err := json.Marshal(key.Hash)
	require.NoError(s, err)
	log, err := json.Marshal(s.log())
	require.NoError(s, err)
	for _, word := range []string{"hunter2", string(hash), text, `"hash"`} {
		if strings.Contains(string(log), word) {
			s.Errorf("the log has %s", word)
		}
	}
	for _, word := range []string{`"TOKEN":"(hidden)"`, `"role":"admin"`} {
		if !strings.Contains(string(log), word) {
			s.Errorf("the log lacks %s: %s", word, log)
		}
	}
}

func (s audits) unsigned() {
	s.apply(catalog.PutApp{App: app("a")})
	s.want()
	s.apply(catalog.Signed{Change: catalog.PutApp{App: app("b")}, By: serving.Author{Who: "local"}})
	s.want("create app b by local at 2")
}

// refused makes changes that fail, or that ask for what is so.
func (s audits) refused() {
	s.apply(signed(catalog.PutApp{App: app("a")}))
	for _, test := range []struct {
		change     catalog.Change
		ifRevision uint64
		want       error
	}{
		{catalog.PutApp{App: app("a"), Create: true}, 0, catalog.ErrExists},
		{catalog.DeleteApp{Name: "b"}, 0, catalog.ErrNotFound},
		{catalog.PutApp{App: app("b", "unknown")}, 0, catalog.ErrInvalid},
		{catalog.DeleteApp{Name: "a"}, 7, catalog.ErrConflict},
		{catalog.RevokeKey{ID: "unknown"}, 0, catalog.ErrNotFound},
		{catalog.PutApp{App: app("a")}, 0, nil},
	} {
		if _, err := s.store.Apply(s.Context(), signed(test.change), test.ifRevision); !errors.Is(err, test.want) {
			s.Fatalf("%#v: got error %v, want %v", test.change, err, test.want)
		}
	}
	s.want("create app a by anna at 1")
}

func restarted(i int) serving.AuditEntry {
	return serving.AuditEntry{
		At: time.Date(2026, 1, 2, 3, 4, i, 678, time.UTC), Who: numbered("who-", i%3), From: "10.0.0.8",
		Action: "restart", Kind: "replica", Name: numbered("replica-", i%5), Before: json.RawMessage(`{"state":"ready"}`),
	}
}

func (s audits) added() {
	given := restarted(1)
	given.ID = "the caller's"
	s.add(given)
	s.apply(signed(catalog.PutApp{App: app("a")}))
	s.add(restarted(2))
	s.want("restart replica replica-1 by who-1 at 0", "create app a by anna at 1", "restart replica replica-2 by who-2 at 0")
	log := s.log()
	for i, want := range map[int]serving.AuditEntry{0: restarted(2), 2: restarted(1)} {
		want.ID = log[i].ID
		if !reflect.DeepEqual(log[i], want) {
			s.Errorf("got %+v, want %+v", log[i], want)
		}
	}
	if err := s.store.AddAudit(s.Context(), serving.AuditEntry{After: json.RawMessage("{")}); err == nil {
		s.Error("added what is not valid JSON")
	}
}

// large changes an app too large for an entry: the change is made, and the entry says
// what it does not show.
func (s audits) large() {
	huge := app("a")
	huge.DefaultOutput = strings.Repeat("x", 100_000)
	cat := s.apply(signed(catalog.PutApp{App: huge}))
	if len(cat.Apps["a"].DefaultOutput) != 100_000 {
		s.Fatalf("got %d bytes", len(cat.Apps["a"].DefaultOutput))
	}
	s.apply(signed(catalog.PutApp{App: app("a")}))
	s.want("create app a by anna at 1", "update app a by anna at 2")
	for _, e := range s.log() {
		if len(e.Before)+len(e.After) > 200 || !strings.Contains(string(e.Before)+string(e.After), `"omitted_bytes":100`) {
			s.Errorf("an entry from %.200s to %.200s", e.Before, e.After)
		}
	}
}

// pages reads the log in pages of every size while it grows: each entry that was there
// comes once.
func (s audits) pages() {
	const entries = 53
	for i := range entries {
		s.add(restarted(i))
	}
	whole := s.log()
	for _, limit := range []int{1, 7, entries - 1, entries, entries + 1} {
		var got []serving.AuditEntry
		for query := (serving.AuditQuery{Limit: limit}); ; query.Before = got[len(got)-1].ID {
			page := s.list(query)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			s.add(restarted(99))
		}
		if missed := len(got) - len(whole); missed != 0 || !reflect.DeepEqual(got, whole) {
			s.Fatalf("pages of %d: got %d entries, want %d", limit, len(got), len(whole))
		}
		whole = s.log()
	}
	if got := s.list(serving.AuditQuery{Limit: 5, Before: whole[len(whole)-1].ID}); len(got) != 0 {
		s.Errorf("before the first: %+v", got)
	}
}

func (s audits) filters() {
	const entries = 450 // more than a store reads at once
	for i := range 15 {
		s.add(restarted(i))
	}
	var apps []serving.App
	for i := range entries {
		apps = append(apps, app(numbered("app-", i)))
	}
	s.apply(signed(catalog.Import{Apps: apps}))
	for i := range 15 {
		s.add(restarted(i))
	}
	for _, test := range []struct {
		query serving.AuditQuery
		want  int
	}{
		{serving.AuditQuery{Limit: 1000}, entries + 30},
		{serving.AuditQuery{Limit: 1000, Kind: "replica"}, 30},
		{serving.AuditQuery{Limit: 1000, Kind: "app"}, entries},
		{serving.AuditQuery{Limit: 1000, Who: "who-1"}, 10},
		{serving.AuditQuery{Limit: 1000, Name: "replica-2"}, 6},
		{serving.AuditQuery{Limit: 1000, Name: "replica-2", Who: "who-1"}, 2},
		{serving.AuditQuery{Limit: 1000, Kind: "app", Name: "replica-2"}, 0},
		{serving.AuditQuery{Limit: 1000, Kind: "key"}, 0},
		{serving.AuditQuery{Limit: 20, Kind: "replica"}, 20},
		{serving.AuditQuery{Limit: 1, Name: "replica-2", Who: "who-1"}, 1},
		{serving.AuditQuery{}, 0},
	} {
		got := s.list(test.query)
		if len(got) != test.want {
			s.Errorf("%+v: got %d entries, want %d", test.query, len(got), test.want)
		}
		for _, e := range got {
			q := test.query
			if q.Kind != "" && e.Kind != q.Kind || q.Name != "" && e.Name != q.Name || q.Who != "" && e.Who != q.Who {
				s.Errorf("%+v: got %+v", q, e)
			}
		}
	}
}

func (s audits) cursors() {
	s.add(restarted(1))
	for _, id := range []string{"x", "-", "0", "1", " ", "\x00", "(", "+", strings.Repeat("9", 100), s.log()[0].ID + "0"} {
		entries, err := s.store.AuditLog(s.Context(), serving.AuditQuery{Before: id, Limit: 10})
		if !errors.Is(err, catalog.ErrInvalid) || entries != nil {
			s.Errorf("before %q: got %v and error %v", id, entries, err)
		}
	}
}

func (s audits) endedContext() {
	ctx, cancel := context.WithCancelCause(s.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	if err := s.store.AddAudit(ctx, restarted(1)); !errors.Is(err, why) {
		s.Errorf("added with error %v", err)
	}
	if entries, err := s.store.AuditLog(ctx, serving.AuditQuery{Limit: 10}); !errors.Is(err, why) || entries != nil {
		s.Errorf("got %v and error %v", entries, err)
	}
	if _, err := s.store.Apply(ctx, signed(catalog.PutApp{App: app("a")}), 0); !errors.Is(err, why) {
		s.Errorf("applied with error %v", err)
	}
	s.want()
}

func (s audits) restart() {
	s.apply(signed(catalog.PutApp{App: app("a")}))
	s.add(restarted(1))
	before := s.log()
	s.store = s.reopen()
	if after := s.log(); !reflect.DeepEqual(after, before) {
		s.Fatalf("got %+v, want %+v", after, before)
	}
	s.apply(signed(catalog.DeleteApp{Name: "a"}))
	s.want("create app a by anna at 1", "restart replica replica-1 by who-1 at 0", "delete app a by anna at 2")
}

// concurrentWriters has every writer make changes, in each other's way: each that is made
// has an entry, and no other has.
func (s audits) concurrentWriters() {
	const writers, each = 16, 10
	s.apply(catalog.PutApp{App: app("shared")}) // nobody signed it
	var mu sync.Mutex
	made := map[uint64]string{}
	var all sync.WaitGroup
	for w := range writers {
		store := s.another()
		all.Go(func() {
			for i := range each {
				who, shared := numbered("writer-", w), app("shared")
				shared.SLO = serving.Duration(time.Duration(1000+w*each+i) * time.Millisecond)
				change := catalog.Signed{Change: catalog.PutApp{App: shared}, By: serving.Author{Who: who}}
				cat, err := store.Apply(s.Context(), change, 0)
				if err != nil {
					s.Errorf("put: %v", err)
					return
				}
				mu.Lock()
				made[cat.Revision] = fmt.Sprintf("%s %v", who, shared.SLO.Std())
				mu.Unlock()
				// What is based on the revision before comes too late.
				if cat, err := store.Apply(s.Context(), change, cat.Revision-1); !errors.Is(err, catalog.ErrConflict) {
					s.Errorf("got revision %v and error %v", cat, err)
				}
			}
		})
	}
	all.Wait()
	logged := map[uint64]string{}
	for _, e := range s.log() {
		var after serving.App
		if err := json.Unmarshal(e.After, &after); err != nil || logged[e.Revision] != "" {
			s.Fatalf("entry %+v comes after %q, error %v", e, logged[e.Revision], err)
		}
		logged[e.Revision] = fmt.Sprintf("%s %v", e.Who, after.SLO.Std())
	}
	if len(made) != writers*each || !maps.Equal(logged, made) {
		s.Fatalf("%d changes and %d entries; the changes are\n%v\nand the entries\n%v", len(made), len(logged), made, logged)
	}
}

// bounded makes changes of many objects, until the first entries are gone.
func (s audits) bounded() {
	const many = serving.MaxAudit/2 + 500
	s.apply(signed(catalog.PutApp{App: app("first")}))
	var apps []serving.App
	for i := range many {
		apps = append(apps, app(numbered("app-", i)))
	}
	s.apply(signed(catalog.Import{Apps: apps}))
	s.apply(signed(catalog.Import{}))
	s.add(restarted(1))
	log := s.log()
	if len(log) < serving.MaxAudit || len(log) > serving.MaxAudit+500 {
		s.Fatalf("%d entries are kept", len(log))
	}
	for i, e := range log {
		want := serving.AuditEntry{Action: "restart"}
		switch {
		case i > many:
			want = serving.AuditEntry{Action: "create", Revision: 2}
		case i > 0:
			want = serving.AuditEntry{Action: "delete", Revision: 3}
		}
		if e.Action != want.Action || e.Revision != want.Revision {
			s.Fatalf("entry %d is %+v, want %+v", i, e, want)
		}
	}
}
