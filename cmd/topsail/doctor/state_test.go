package doctor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// used is a data directory with a state, a copy of it and a backup of that age; it is open.
func used(t *testing.T, dir string, age time.Duration) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	app := serving.App{Name: "a", InputType: serving.Doubles, SLO: serving.Duration(time.Second)}
	if _, err := s.Apply(t.Context(), catalog.PutApp{App: app}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SwapState(t.Context(), serving.StateKey{App: "a", Kind: "exp3"}, 0, []byte("learned much")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_ = s.KeepCopies(ctx) // the one of the start
	if age >= 0 {
		entry := serving.AuditEntry{At: time.Now().Add(-age), Who: "ann", Action: "backup", Kind: "backup", Name: "b.tar"}
		require.NoError(t, s.AddAudit(t.Context(), entry))
	}
	return s
}

func TestState(t *testing.T) {
	lose := func(t *testing.T, dir string) {
		require.NoError(t, errors.Join(os.Remove(filepath.Join(dir, filestore.FileName)), os.RemoveAll(filepath.Join(dir, "copies"))))
	}
	bundle := func(t *testing.T, dir string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "bundles", "x"), 0o700))
	}
	spoil := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, filestore.FileName)
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, []byte(strings.ReplaceAll(string(data), from, to)), 0o600)
			}
			require.NoError(t, err)
		}
	}
	for name, test := range map[string]struct {
		age    time.Duration // of the last backup; below zero: there is none
		do     []func(t *testing.T, dir string)
		states []check.State
		says   string
	}{
		"none yet":                        {-1, []func(*testing.T, string){lose}, []check.State{check.OK}, "there is none yet"},
		"good":                            {time.Hour, nil, []check.State{check.OK, check.OK}, "its newest copy is of 20"},
		"good and never backed up":        {-1, nil, []check.State{check.OK, check.Warn}, "has no backup"},
		"good and backed up long ago":     {8 * 24 * time.Hour, nil, []check.State{check.OK, check.Warn}, "b.tar, 8.0 days ago"},
		"good and backed up 6.9 days ago": {166 * time.Hour, nil, []check.State{check.OK, check.OK}, "b.tar, 6.9 days ago"},
		"missing beside bundles":          {-1, []func(*testing.T, string){lose, bundle}, []check.State{check.Failed}, "not a first start"},
		"missing beside copies": {-1, []func(*testing.T, string){func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, filestore.FileName)); err != nil {
				t.Fatal(err)
			}
		}}, []check.State{check.Failed}, "start with --recover"},
		"empty beside copies": {-1, []func(*testing.T, string){func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, filestore.FileName), 0); err != nil {
				t.Fatal(err)
			}
		}}, []check.State{check.Failed}, "missing or empty"},
		"the catalog is damaged": {-1, []func(*testing.T, string){spoil(`"input_type":"doubles"`, `"input_type":"doublex"`)}, []check.State{check.Failed}, "damaged: "},
		"a state is damaged":     {-1, []func(*testing.T, string){spoil("learned much", "learned mucj")}, []check.State{check.Warn}, "are set aside"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, used(t, dir, test.age).Close())
			for _, do := range test.do {
				do(t, dir)
			}
			holds(t, state(t.Context(), dir), test.states, test.says)
		})
	}
}

// While it is in use, the age of the last backup is known all the same, and after a start, too.
func TestStateInUse(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want check.State
		says string
	}{
		"never": {-1, check.Warn, "has no backup"}, "today": {time.Hour, check.OK, "b.tar, 0.0 days ago"}, "long ago": {8 * 24 * time.Hour, check.Warn, "b.tar, 8.0 days ago"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := used(t, dir, test.age)
			holds(t, state(t.Context(), dir), []check.State{check.OK, test.want}, "in use by a topsail", test.says)
			if err := errors.Join(s.Close(), os.Remove(filepath.Join(dir, "last-backup"))); err != nil {
				t.Fatal(err)
			}
			s, err := filestore.Open(dir, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer s.Close()
			holds(t, state(t.Context(), dir), []check.State{check.OK, test.want}, "in use by a topsail", test.says)
			if err := os.WriteFile(filepath.Join(dir, "last-backup"), []byte("2026-01-01T00:00:00Z b.tar 00000000\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			holds(t, state(t.Context(), dir), []check.State{check.OK, check.Failed}, "last-backup is damaged")
		})
	}
}

func holds(t *testing.T, found []check.Finding, states []check.State, says ...string) {
	t.Helper()
	text := ""
	for i, f := range found {
		text += f.Detail + "; " + f.Next + "\n"
		if len(found) != len(states) || f.State != states[i] || (f.Next == "") != (f.State == check.OK) {
			t.Fatalf("got %+v", found)
		}
	}
	for _, words := range says {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not in\n%s", words, text)
		}
	}
}

// entries is an audit log, or why there is none.
type entries struct {
	list []serving.AuditEntry
	err  error
}

func (e entries) AuditLog(context.Context, serving.AuditQuery) ([]serving.AuditEntry, error) {
	return e.list, e.err
}

func TestLastBackup(t *testing.T) {
	at := func(action string, age time.Duration) serving.AuditEntry {
		return serving.AuditEntry{At: time.Now().Add(-age), Action: action, Kind: "backup", Name: action + ".tar"}
	}
	for name, test := range map[string]struct {
		log  entries
		want check.State
		says string
	}{
		"none":              {entries{}, check.Warn, "has no backup"},
		"unreadable":        {entries{err: errors.New("no route")}, check.Failed, "no route"},
		"young":             {entries{list: []serving.AuditEntry{at("backup", tooOld-time.Minute)}}, check.OK, "backup.tar, 7.0 days ago"},
		"old":               {entries{list: []serving.AuditEntry{at("backup", tooOld+time.Minute)}}, check.Warn, "backup.tar, 7.0 days ago"},
		"restored since":    {entries{list: []serving.AuditEntry{at("restore", time.Hour), at("backup", 2*24*time.Hour)}}, check.OK, "backup.tar, 2.0 days ago"},
		"only restored":     {entries{list: []serving.AuditEntry{at("restore", time.Hour), at("recover", time.Hour)}}, check.Warn, "has no backup"},
		"the newest counts": {entries{list: []serving.AuditEntry{at("backup", time.Hour), at("backup", 30*24*time.Hour)}}, check.OK, "0.0 days ago"},
	} {
		got := LastBackup(t.Context(), test.log)
		if got.State != test.want || !strings.Contains(got.Detail, test.says) || (got.Next == "") != (got.State == check.OK) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
