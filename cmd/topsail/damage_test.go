package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"topsail/internal/servers"
)

// damages are what may become of a file while nothing runs.
var damages = []struct {
	name string
	do   func(path string) error
}{
	{"flipped", flip},
	{"cut", func(path string) error { return cut(path) }},
	{"emptied", func(path string) error { return os.Truncate(path, 0) }},
	{"removed", os.Remove},
	{"unreadable", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }}, // also to root
}

// flip changes a bit of a file, and neither its size nor its time.
func flip(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[max(0, len(data)-2)] ^= 1 // of factor.py it is the number
	return errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func cut(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()/2)
}

// filesOf are the files in a data directory: the archives of bundles, and all others but the
// state, whose damages have tests of their own.
func filesOf(t *testing.T, data string) (archives, others []string) {
	t.Helper()
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		switch name, _ := filepath.Rel(data, path); {
		case err != nil || entry.IsDir() || name == "topsail.db":
		case strings.HasPrefix(name, "bundles/"):
			archives = append(archives, path)
		default:
			others = append(others, path)
		}
		return err
	})
	if err != nil || len(archives) != 1 || len(others) < 10 {
		t.Fatalf("there are %v and %v, %v", archives, others, err)
	}
	return archives, others
}

func damage(t *testing.T, paths []string, how func(path string) error) {
	t.Helper()
	for _, path := range paths {
		if err := how(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedFilesAreHealed damages everything in the data directory but the state and the
// archive, of which all of it is made again: answers are the right ones, and the log names
// what has changed.
func TestDamagedFilesAreHealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, "")
	operate(t, in).do("deploy", "times", "--bundle", scaled(t, 7, 1), "--app", "times", "--slo", "2s", "--default", "none")
	for _, kind := range damages {
		if err := in.stop(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_, others := filesOf(t, filepath.Join(dir, "data"))
		damage(t, others, kind.do)
		in = start(t, dir, "")
		o := operate(t, in)
		until(t, "answer after all files were "+kind.name, func() bool {
			got, _, _ := o.run("predict", "times", "[3]")
			if got != "none\n" && got != "21.0\n" {
				t.Fatalf("%s: it answers %q", kind.name, got)
			}
			return got == "21.0\n"
		})
		for _, name := range []string{"factor.py", "SDK"} {
			if kind.name != "removed" && !strings.Contains(in.output(), name) {
				t.Errorf("%s: the log does not name %s:\n%s", kind.name, name, in.output())
			}
		}
	}
}

// TestADamagedArchiveIsNamed damages an archive of which nothing is unpacked: no replica starts
// from it, the doctor and the log name it, and to upload it again is all that is to be done.
func TestADamagedArchiveIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	// Local mode greets once all replicas are ready, so nothing can be read from its greeting.
	var flags []string
	for _, which := range []string{"gateway", "web"} {
		port, err := servers.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--"+which+"-addr", fmt.Sprintf("127.0.0.1:%d", port))
	}
	in := start(t, dir, "", flags...)
	model := scaled(t, 7, 1)
	o := operate(t, in)
	o.do("deploy", "times", "--bundle", model, "--app", "times", "--slo", "2s", "--default", "none")
	for _, kind := range damages {
		if err := in.stop(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		archives, _ := filesOf(t, data)
		damage(t, archives, kind.do)
		if err := os.RemoveAll(filepath.Join(data, "runtimes", "bundles")); err != nil {
			t.Fatal(err)
		}
		in = start(t, dir, "", flags...)
		digest := strings.TrimSuffix(filepath.Base(archives[0]), ".zip")
		in.until("the reason, after the archive was "+kind.name, func() bool {
			return strings.Contains(in.output(), digest) && strings.Contains(in.output(), "upload it again")
		})
		out, _, ok := examine(t, "", "--local", "--data-dir", data)
		if kind.name != "removed" && (ok || !strings.Contains(out, digest)) {
			t.Errorf("%s: the doctor says\n%s", kind.name, out)
		}
		o.do("artifact", "push", model)
		o.answers("times", "[3]", "21.0")
	}
}
