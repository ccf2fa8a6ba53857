//go:build system

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// damages are what may become of a file while nothing runs.
var damages = []struct {
	name string
	do   func(path string) error
}{
	{"flipped", flip},
	{"removed", os.Remove},
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

// victim is a kind of file in the data directory, and what is seen where one was damaged.
type victim struct {
	what   string
	path   string // a pattern, of which the last one counts
	named  bool   // in the log, by the name of the file, or by these words
	words  string
	healed func(t *testing.T, path string, before, damaged []byte)
}

// restored says that a file is what it was before.
func restored(t *testing.T, path string, before, _ []byte) {
	t.Helper()
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("%s is %.80q, and was %.80q: %v", path, now, before, err)
	}
}

// replaced says that a file was made again.
func replaced(t *testing.T, path string, before, damaged []byte) {
	t.Helper()
	now, err := os.ReadFile(path)
	if err != nil || len(before) > 0 && (len(now) == 0 || bytes.Equal(now, damaged)) {
		t.Errorf("%s is %.80q, %v", path, now, err)
	}
}

// passedOver says that there is a good copy beside a damaged one.
func passedOver(t *testing.T, path string, _, _ []byte) {
	t.Helper()
	for _, c := range filestore.Copies(filepath.Dir(filepath.Dir(path))) {
		if found, err := filestore.Check(c.Path); err == nil && len(found) == 0 {
			return
		}
	}
	t.Errorf("there is no good copy beside %s", path)
}

// victims are files that have nothing to do with each other, which are damaged together.
var victims = []victim{
	{what: "a file of a bundle", path: "runtimes/bundles/*/factor.py", named: true, healed: restored},
	{what: "the record of a bundle", path: "runtimes/bundles/*.record", healed: replaced},
	{what: "a file of the SDK", path: "runtimes/sdk/*/topsail/__init__.py", named: true, healed: restored},
	{what: "the charts", path: "traffic", named: true, words: "the past of the charts", healed: replaced},
	{what: "when the last backup was made", path: "last-backup", healed: restored},
	{what: "the newest copy", path: "copies/*.db", healed: passedOver},
}

// prepared is a data directory with a past: a model of a bundle in Python, one that learns, copies,
// charts and a backup. It is made once, and copied.
type prepared struct {
	dir, config string
}

func prepare(t *testing.T) prepared {
	t.Helper()
	p := prepared{dir: t.TempDir()}
	p.config = learning(p.dir)
	in := start(t, p.dir, p.config).ready()
	o := operate(t, in)
	o.do("deploy", "times", "--bundle", scaled(t, 7, 1), "--app", "times", "--slo", "2s", "--default", "none")
	o.answers("times", "[3]", "21.0")
	if status, text, err := in.post("/sum/update", `{"input": [1, 2], "label": 3}`); err != nil || status != http.StatusOK {
		t.Fatalf("feedback gets %d %s, %v", status, text, err)
	}
	o.do("backup", filepath.Join(p.dir, "backup.tar"))
	for range 2 { // the next start keeps a copy of it all
		require.NoError(t, in.stop(syscall.SIGTERM))
		in = start(t, p.dir, p.config).ready()
	}
	require.NoError(t, in.stop(syscall.SIGTERM))
	return p
}

// copy is a folder with the same data directory, with the times of its files.
func (p prepared) copy(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(p.dir, "data"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// one is the last file of a pattern in a data directory.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "data", pattern))
	if len(found) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	return found[len(found)-1]
}

// TestEveryDamageIsHealedOrNamed damages each kind of file in each way, one kind beside others
// that have nothing to do with it: answers are the right ones, what was damaged is what it was,
// or is made again, and the log names it where something was lost.
func TestEveryDamageIsHealedOrNamed(t *testing.T) {
	t.Parallel()
	p := prepare(t)
	for _, kind := range damages {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			p.damaged(t, kind.do)
			t.Run("archive", func(t *testing.T) { p.damagedArchive(t, kind.name, kind.do) })
			t.Run("state", func(t *testing.T) { p.damagedState(t, kind.name, kind.do) })
		})
	}
	t.Run("learned", p.damagedLearning)
}

func (p prepared) damaged(t *testing.T, how func(string) error) {
	dir := p.copy(t)
	paths, before, after := make([]string, len(victims)), make([][]byte, len(victims)), make([][]byte, len(victims))
	for i, v := range victims {
		paths[i] = one(t, dir, v.path)
		before[i], _ = os.ReadFile(paths[i])
		require.NoError(t, how(paths[i]))
		after[i], _ = os.ReadFile(paths[i]) // nothing where it cannot be read
	}
	in := start(t, dir, p.config).ready()
	o := operate(t, in)
	p.right(t, in, o, dir)
	require.NoError(t, in.stop(syscall.SIGTERM))
	for i, v := range victims {
		t.Run(v.what, func(t *testing.T) {
			if bytes.Equal(before[i], after[i]) && len(before[i]) > 0 {
				t.Fatalf("%s was not damaged", paths[i])
			}
			v.healed(t, paths[i], before[i], after[i])
			words := cmp.Or(v.words, filepath.Base(paths[i]))
			if v.named && !strings.Contains(in.output(), words) {
				t.Errorf("the log does not name %s:\n%s", words, in.output())
			}
		})
	}
}

// right says that no answer is another one than it was.
func (p prepared) right(t *testing.T, in *instance, o *operator, dir string) {
	t.Helper()
	wait.Until(t, "answer", func() bool {
		got, _, _ := o.run("predict", "times", "[3]")
		if got != "none\n" && got != "21.0\n" {
			t.Fatalf("it answers %q", got)
		}
		return got == "21.0\n"
	})
	if status, text, err := in.post("/sum/predict", `{"input": [1, 2.5]}`); err != nil || status != http.StatusOK || !strings.Contains(text, "3.5") {
		t.Errorf("%s: the other app answers %d %s, %v", dir, status, text, err)
	}
}

// damagedArchive damages the archive of a bundle that is unpacked: its replicas go on, and the doctor,
// health and backups name it.
func (p prepared) damagedArchive(t *testing.T, name string, how func(string) error) {
	dir := p.copy(t)
	path := one(t, dir, "bundles/*.zip")
	require.NoError(t, how(path))
	in := start(t, dir, p.config).ready()
	o := operate(t, in)
	p.right(t, in, o, dir)
	digest := strings.TrimSuffix(filepath.Base(path), ".zip")
	if name == "removed" {
		if c := in.condition(digest); !strings.Contains(c, "sha256:"+digest+" of times:1; upload them again") {
			t.Errorf("condition %q", c)
		}
		return
	}
	if out, _, ok := examine(t, "", "--local", "--data-dir", filepath.Join(dir, "data")); ok || !strings.Contains(out, digest) {
		t.Errorf("the doctor says\n%s", out)
	}
	if _, said, code := o.run("backup", filepath.Join(t.TempDir(), "b.tar")); code == 0 || !strings.Contains(said, "bundle sha256:"+digest) {
		t.Errorf("a backup ends with %d and says %s", code, said)
	}
	o.do("backup", filepath.Join(t.TempDir(), "b.tar"), "--without-bundles")
}

// damagedState damages the state itself: nothing starts from it, the reason and the way out are
// said by the start and by the doctor, and the way out leads out.
func (p prepared) damagedState(t *testing.T, name string, how func(string) error) {
	dir := p.copy(t)
	path := one(t, dir, filestore.FileName)
	if name == "flipped" {
		how = func(path string) error { return alter(path, `"name":"times"`, `"name":"timet"`) }
	}
	require.NoError(t, how(path))
	in := start(t, dir, p.config)
	select {
	case err := <-in.exited:
		if err == nil || !strings.Contains(in.output(), path) && !strings.Contains(in.output(), filepath.Base(path)) {
			t.Errorf("it ended with %v:\n%s", err, in.output())
		}
	case <-time.After(patience):
		t.Fatalf("it started from a state that was %s:\n%s", name, in.output())
	}
	if out, _, ok := examine(t, "", "--local", "--data-dir", filepath.Join(dir, "data")); ok || !regexp.MustCompile(`(?m)^state +fail`).MatchString(out) {
		t.Errorf("the doctor says\n%s", out)
	}
	if !strings.Contains(in.output(), "start with --recover") {
		t.Errorf("the way out is not said:\n%s", in.output())
	}
	in = start(t, dir, p.config, "--recover").ready()
	p.right(t, in, operate(t, in), dir)
	if !strings.Contains(in.output(), "what was changed since is lost") {
		t.Errorf("the loss is not said:\n%s", in.output())
	}
}

// damagedLearning flips a bit of what a policy has learned: it starts without that, and says so in the
// log, in health and as a metric.
func (p prepared) damagedLearning(t *testing.T) {
	t.Parallel()
	dir := p.copy(t)
	require.NoError(t, alter(one(t, dir, filestore.FileName), `"steps":1,`, `"steps":3,`))
	in := start(t, dir, p.config).ready()
	p.right(t, in, operate(t, in), dir)
	if c := in.condition("was damaged"); !strings.Contains(c, "learned") && !strings.Contains(c, "selection/states") {
		t.Errorf("condition %q", c)
	}
	if _, text := in.operations("/metrics"); !strings.Contains(text, "topsail_store_damaged 1") || !strings.Contains(text, "topsail_store_unwritable 0") {
		t.Error("the metric does not say it")
	}
	if n := strings.Count(in.output(), "the data directory is damaged"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, in.output())
	}
	if l := in.learned("sum"); l.Steps != 0 {
		t.Errorf("it has learned %+v", l)
	}
}

// alter changes a text wherever it is in a file, to one of the same length.
func alter(path, from, to string) error {
	data, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(data, []byte(from)) {
		err = fmt.Errorf("%q is not in %s", from, path)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600)
}
