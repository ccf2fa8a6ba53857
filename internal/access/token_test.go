package access

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

func TestASecretIsTrimmedAndCompared(t *testing.T) {
	f := newFolder(t)
	s, err := TokenFile(f.write("token", "  correct horse\r\n\n"), nil)
	require.NoError(t, err)
	if got := string(s.Bytes()); got != "correct horse" {
		t.Errorf("Bytes = %q", got)
	}
	for shown, want := range map[string]bool{"correct horse": true, "correct hors": false, "correct horse ": false, "": false, "Correct horse": false} {
		if s.Equal([]byte(shown)) != want {
			t.Errorf("Equal(%q) = %v", shown, !want)
		}
	}
	var none Secret
	if none.Bytes() != nil || none.Fresh() != nil || none.Equal(nil) || none.Equal([]byte{}) {
		t.Error("the zero value has a secret, or equals one")
	}
}

func TestASecretIsNeverShown(t *testing.T) {
	log, text := newLog()
	f := newFolder(t)
	path := f.write("token", "hush-hush")
	require.NoError(t, os.Chmod(path, 0o644))
	s, err := TokenFile(path, log)
	require.NoError(t, err)
	log.Info("configured", "token", s, "config", struct{ Token Secret }{s})
	slog.New(slog.NewJSONHandler(text, nil)).Info("configured", "token", s, "pointer", &s, "config", map[string]any{"token": s})
	encoded, err := json.Marshal(map[string]any{"token": s})
	require.NoError(t, err)
	all := text.String() + string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		all += fmt.Sprintf(verb+verb+verb, s, &s, struct{ s Secret }{s})
	}
	for _, shown := range []string{"hush", "68757368", "104 117 115 104"} {
		if strings.Contains(all, shown) {
			t.Errorf("%q is shown in %s", shown, all)
		}
	}
	if !strings.Contains(all, "every user of this machine can read") || !strings.Contains(all, path) {
		t.Errorf("nothing warns of the file's mode: %s", all)
	}
}

func TestAFileOfItsOwnerOnlyBringsNoWarning(t *testing.T) {
	log, text := newLog()
	if _, err := TokenFile(newFolder(t).write("token", "x"), log); err != nil || text.String() != "" {
		t.Errorf("%v, %s", err, text)
	}
}

func TestASecretFollowsItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLog()
		f := newFolder(t)
		s, err := TokenFile(f.write("token", "first"), log)
		require.NoError(t, err)
		expect := func(want string) {
			t.Helper()
			if got := string(s.Bytes()); got != want {
				t.Errorf("Bytes = %q, want %q", got, want)
			}
		}
		time.Sleep(time.Second)
		expect("first")
		f.write("token", "other")
		time.Sleep(time.Second - 1)
		expect("first") // looked at within the last second
		time.Sleep(time.Nanosecond)
		expect("other")

		f.write("token", "third")
		if got := string(s.Fresh()); got != "third" {
			t.Errorf("Fresh = %q", got)
		}

		f.write("token", "\n")
		for range 5 {
			time.Sleep(time.Second)
			expect("third")
		}
		require.NoError(t, os.Remove(filepath.Join(f.dir, "token")))
		for range 5 {
			time.Sleep(time.Second)
			expect("third")
		}
		if complaints := text.String(); strings.Count(complaints, "level=ERROR") != 2 || !strings.Contains(complaints, "it is empty") || !strings.Contains(complaints, "no such file") {
			t.Errorf("each fault is to be logged once:\n%s", complaints)
		}
		f.write("token", "fourth")
		time.Sleep(time.Second)
		expect("fourth")
		f.write("token", "")
		time.Sleep(time.Second)
		expect("fourth")
		if strings.Count(text.String(), "level=ERROR") != 3 {
			t.Errorf("a fault that comes back is not logged:\n%s", text)
		}
	})
}

// A change that keeps inode and size shows in its time, and a file that was not
// readable is tried again although nothing about it has changed.
func TestChangesInPlace(t *testing.T) {
	f := newFolder(t)
	path := f.write("token", "first")
	s, err := TokenFile(path, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("other"), 0o600))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)))
	s.file.age()
	if got := string(s.Bytes()); got != "other" {
		t.Errorf("Bytes = %q", got)
	}
	s.file.complaint = "permission denied"
	if s.Fresh(); s.file.complaint != "" {
		t.Error("the file was not tried again")
	}
}

// Kubernetes and Vault agents swap a link to a folder.
func TestALinkThatIsSwapped(t *testing.T) {
	f := newFolder(t)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.Mkdir(filepath.Join(f.dir, name), 0o700))
		folder{t, filepath.Join(f.dir, name)}.write("token", "of "+name)
	}
	link := filepath.Join(f.dir, "now")
	require.NoError(t, os.Symlink("a", link))
	s, err := TokenFile(filepath.Join(link, "token"), nil)
	require.NoError(t, err)
	require.NoError(t, os.Symlink("b", link+".new"))
	require.NoError(t, os.Rename(link+".new", link))
	if got := string(s.Fresh()); got != "of b" {
		t.Errorf("Fresh = %q", got)
	}
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	f := newFolder(t)
	pipe := filepath.Join(f.dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for path, says := range map[string]string{
		filepath.Join(f.dir, "none"): "no such file",
		f.dir:                        "not a regular file",
		pipe:                         "not a regular file",
		f.write("empty", " \n\t"):    "it is empty",
		f.write("lines", "one\ntwo"): "more than one line",
		f.write("zero", "a\x00b"):    "control characters",
		f.write("long", strings.Repeat("x", maxToken+1)):    "longer than 4096",
		f.write("huge", strings.Repeat("\n", maxFile)+"xx"): "more than 1048576 bytes",
	} {
		_, err := TokenFile(path, nil)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%v, want the path and %q", err, says)
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "x", " a b \n", "a\nb", "\xff", "a\u0085"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		token, err := parseToken([][]byte{content})
		if (err == nil) != (len(token) > 0) {
			t.Fatalf("%q: %q, %v", content, token, err)
		}
		if again, err2 := parseToken([][]byte{token}); err == nil && (err2 != nil || string(again) != string(token)) {
			t.Fatalf("%q gives %q, which gives %q, %v", content, token, again, err2)
		}
	})
}
