package filestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// take claims a name, which must be free or hold want.
func take(t testing.TB, s *Store, name string, want *serving.Reply) {
	t.Helper()
	taken, err := s.ClaimReply(t.Context(), name, "of "+name)
	if err != nil || !reflect.DeepEqual(taken, want) {
		t.Errorf("%s: got %+v and error %v, want %+v", name, taken, err, want)
	}
}

func keep(t testing.TB, s *Store, name string, reply serving.Reply) {
	t.Helper()
	if _, err := s.KeepReply(t.Context(), name, reply); err != nil {
		t.Fatal(err)
	}
}

// inReplies looks at the replies in the file, or changes them.
func inReplies(t testing.TB, s *Store, do func(r replies) error) {
	t.Helper()
	err := s.update(func(in *tx) error {
		r, err := makeReplies(in)
		if err != nil {
			return err
		}
		return do(r)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRepliesLast(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	kept := serving.Reply{Fingerprint: "f", Status: 201, Body: []byte("{}")}
	take(t, s, "claimed", nil)
	keep(t, s, "kept", kept)
	closeStore(t, s)
	s = open(t, dir)
	take(t, s, "claimed", nil) // who was doing it is gone
	take(t, s, "kept", &kept)
}

// TestClaimsOfEarlierReleases are those of processes that are gone.
func TestClaimsOfEarlierReleases(t *testing.T) {
	s, soon := open(t, t.TempDir()), time.Now().Add(time.Minute)
	inReplies(t, s, func(r replies) error { return r.put(nameHash("n"), serving.Reply{Fingerprint: "f"}, soon) })
	take(t, s, "n", nil)
	keep(t, s, "n", serving.Reply{Fingerprint: "f", Status: 201})
	inReplies(t, s, func(r replies) error { wantReplies(t, r, 1); return nil })
}

// TestRepliesExpire lets time pass.
func TestRepliesExpire(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, quiet())
		if err != nil {
			t.Fatal(err)
		}
		defer closeStore(t, s)
		kept := serving.Reply{Fingerprint: "f", Status: 201, Body: []byte("{}")}
		take(t, s, "claimed", nil)
		take(t, s, "kept", nil)
		keep(t, s, "kept", kept)
		time.Sleep(serving.ReplyClaimed - time.Nanosecond)
		take(t, s, "claimed", &serving.Reply{Fingerprint: "of claimed"})
		time.Sleep(time.Nanosecond)
		take(t, s, "claimed", nil)
		time.Sleep(serving.ReplyKept - serving.ReplyClaimed - time.Nanosecond)
		take(t, s, "kept", &kept)
		time.Sleep(time.Nanosecond)
		take(t, s, "kept", nil)
		inReplies(t, s, func(r replies) error { wantReplies(t, r, 1); return nil })
	})
}

// wantReplies checks that the replies, their times and the numbers fit.
func wantReplies(t interface{ Errorf(string, ...any) }, r replies, count int) {
	texts, due, size := 0, 0, 0
	c := r.texts.cursor()
	for hash, value := c.first(); hash != nil; hash, value = c.next() {
		texts++
		size += len(value)
		if r.due.get(dueKey(value, hash)) == nil {
			t.Errorf("%x has no time", hash)
		}
	}
	c = r.due.cursor()
	for k, _ := c.first(); k != nil; k, _ = c.next() {
		due++
	}
	if texts != count || due != count || r.root.number(repliesNumber) != uint64(count) || r.root.number(replyBytesNumber) != uint64(size) {
		t.Errorf("%d replies, %d times, and numbers %d and %d, want %d and %d",
			texts, due, r.root.number(repliesNumber), r.root.number(replyBytesNumber), count, size)
	}
}

// TestTooManyReplies fills the room for names; the next one is refused until one goes.
func TestTooManyReplies(t *testing.T) {
	s, soon := open(t, t.TempDir()), time.Now().Add(time.Hour)
	inReplies(t, s, func(r replies) error {
		for i := range maxReplies {
			if err := r.put(nameHash(fmt.Sprint(i)), serving.Reply{Status: 200}, soon); err != nil {
				return err
			}
		}
		return nil
	})
	refused := func() {
		t.Helper()
		if taken, err := s.ClaimReply(t.Context(), "one more", "f"); !errors.Is(err, serving.ErrTooManyReplies) || taken != nil {
			t.Errorf("got %+v and error %v", taken, err)
		}
	}
	refused()
	take(t, s, "7", &serving.Reply{Status: 200})
	refused()
	inReplies(t, s, func(r replies) error { return r.remove(nameHash("7")) })
	take(t, s, "one more", nil)
	take(t, s, "one more", &serving.Reply{Fingerprint: "of one more"})
}

// TestTooLargeReplies fills the room for answers.
func TestTooLargeReplies(t *testing.T) {
	s := open(t, t.TempDir())
	take(t, s, "n", nil)
	inReplies(t, s, func(r replies) error { return r.charge(1, maxReplyBytes-1000) })
	if _, err := s.KeepReply(t.Context(), "n", serving.Reply{Status: 200, Body: make([]byte, 2000)}); !errors.Is(err, serving.ErrTooManyReplies) {
		t.Errorf("got error %v", err)
	}
	take(t, s, "n", &serving.Reply{Fingerprint: "of n"})
	keep(t, s, "n", serving.Reply{Status: 200, Body: make([]byte, 200)})
}

// TestRoomForReplies compares what is kept with a model of it.
func TestRoomForReplies(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "rooms.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rapid.Check(t, func(t *rapid.T) {
		in := begin(t, db)
		defer in.Rollback()
		r, err := makeReplies(in)
		if err != nil {
			t.Fatal(err)
		}
		now, model := time.Unix(1_700_000_000, 0), map[string]time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "passed")))
			if err := r.clear(now); err != nil {
				t.Fatal(err)
			}
			for name, due := range model {
				if !due.After(now) {
					delete(model, name)
				}
			}
			name := string(rapid.ByteRange('a', 'f').Draw(t, "name"))
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				delete(model, name)
				err = r.remove(nameHash(name))
			} else {
				model[name] = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "kept for")))
				err = r.put(nameHash(name), serving.Reply{Status: 200, Body: make([]byte, rapid.IntRange(0, 300).Draw(t, "size"))}, model[name])
			}
			if err != nil {
				t.Fatal(err)
			}
			wantReplies(t, r, len(model))
			for name, due := range model {
				if live := r.live(nameHash(name), now) != nil; live != due.After(now) {
					t.Fatalf("%s is due in %v; live: %v", name, due.Sub(now), live)
				}
			}
		}
	})
}

// TestDamageToTheRest damages a file with an audit log and replies: it comes back with
// its catalog, and works on, or is refused in words.
func TestDamageToTheRest(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	empty := text(t, s.Catalog())
	for i := range 50 {
		if err := s.AddAudit(t.Context(), serving.AuditEntry{Kind: "replica", Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		keep(t, s, fmt.Sprint(i), serving.Reply{Status: 200, Body: make([]byte, 300)})
	}
	last := text(t, apply(t, s, signed(catalog.PutApp{App: app("a")})))
	closeStore(t, s)
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	u, random, came := used{data, []string{empty, last}}, rand.New(rand.NewPCG(7, 8)), 0
	for range 60 {
		broken := damage(random, data)
		if u.try(t, broken) == "" {
			continue
		}
		came++
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		workOn(t, s)
		closeStore(t, s)
	}
	if came < 20 {
		t.Errorf("came back only %d times; the damage shows too little", came)
	}
}

// workOn uses the audit log and the replies.
func workOn(t *testing.T, s *Store) {
	t.Helper()
	if err := s.AddAudit(t.Context(), serving.AuditEntry{Kind: "key", Name: "after"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AuditLog(t.Context(), serving.AuditQuery{Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if _, err := s.ClaimReply(t.Context(), fmt.Sprint(i), "f"); err != nil && !errors.Is(err, serving.ErrTooManyReplies) {
			t.Fatal(err)
		}
		if i%20 == 0 {
			if err := s.DropReply(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
