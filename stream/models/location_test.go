package models

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/test/require"
)

// TestOthersGoOn while one model cannot be fetched.
func TestOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var asked atomic.Int64
		models := w.net.Serve(t, http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) { asked.Add(1); to.WriteHeader(http.StatusBadGateway) }))
		away := source("1")
		away.Name, away.Data, away.Location, away.SHA256 = "away", nil, models+"/wine.py", strings.Repeat("ab", 32)
		w.run(func(c *Config) { c.Locations.Prefixes = []string{models + "/"} })
		w.write(message("a", away), message("b", source("1")), message("c", source("2")))
		w.settle()
		w.want(outcome{"b", Deployed}, outcome{"c", Deployed}, outcome{"a", "location_away: the model cannot be fetched: "})
		if asked.Load() < 2 {
			t.Errorf("it was asked %d times", asked.Load())
		}
	})
}

// TestLocations fetches models, and holds them to their checksums and to where they may be.
func TestLocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		body := source("1").Data
		sum := sha256.Sum256(body)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "wine.py"), body, 0o600))
		require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link.py")))
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe.py"), 0o600); err != nil { // nobody writes to it
			t.Fatal(err)
		}
		elsewhere := w.net.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it went elsewhere") }))
		models := w.net.Serve(t, http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/models/good.py", "/secret.py":
				_, _ = to.Write(body)
			case "/models/other.py":
				_, _ = to.Write([]byte("something else"))
			case "/models/leads":
				http.Redirect(to, r, elsewhere, http.StatusFound)
			case "/models/breaks.py":
				to.Header().Set("Content-Length", "1000")
				_, _ = to.Write(body)
			}
		}))
		w.run(func(c *Config) {
			c.Locations.Prefixes = []string{models + "/models/", "http://127.0.0.1:1/", "file://" + dir + "/"}
		})
		for i, one := range []struct{ location, want string }{
			{models + "/models/good.py", Deployed},
			{"file://" + dir + "/wine.py", Deployed},
			{models + "/models/other.py", "wrong_checksum"},
			{models + "/models/leads", "location_refused"},
			{models + "/models/breaks.py", "location_away"},
			{models + "/models/../secret.py", "location_refused"},
			{models + "/models/%2e%2e/secret.py", "location_refused"},
			{models + "/secret.py", "location_refused"},
			{strings.Replace(models, "http://", "http://user:secret@", 1) + "/models/good.py", "location_refused"},
			{"file://" + dir + "/link.py", "location_away"},
			{"file://" + dir + "/none.py", "location_away"},
			{"file://" + dir + "/pipe.py", "location_refused"},
			{"file:///etc/passwd", "location_refused"},
			{"gopher://models", "location_refused"},
			{"http://127.0.0.1:1/wine.py?signature=secret", "location_away"},
			{"http://127.0.0.1:1/\x7f?signature=secret", "invalid"},
			{"://", "invalid"},
		} {
			m := source("1")
			m.Name, m.Data, m.Location, m.SHA256 = fmt.Sprintf("m%d", i), nil, one.location, hex.EncodeToString(sum[:])
			dead, out := len(w.read("dead")), len(w.read("out"))
			w.write(message(fmt.Sprint(i), m))
			w.settle()
			all := w.outcomesOf()
			got := all[len(all)-1].what
			if len(w.read("out")) > out {
				got = all[out].what
			} else if len(w.read("dead")) != dead+1 {
				t.Fatalf("%s: nothing became of it", one.location)
			}
			if !strings.HasPrefix(got, one.want) || strings.Contains(got, "secret@") || strings.Contains(got, "=secret") {
				t.Errorf("%s: %s, want %s", one.location, got, one.want)
			}
		}
		a, b := w.store.Catalog().Models["m0"], w.store.Catalog().Models["m1"]
		if a == nil || b == nil || a.Versions["1"].Container.Bundle != b.Versions["1"].Container.Bundle {
			t.Error("the same model has two bundles")
		}
	})
}
