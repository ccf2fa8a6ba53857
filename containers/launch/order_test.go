//go:build unix

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

// fakeVersion is one that no real interpreter has.
const fakeVersion = "3.99"

// fakePython stands for an interpreter with venv and pip. It says in $HOME/calls what it was asked to do, and its pip waits
// for a writer of $HOME/gate, if that is there.
const fakePython = `#!/bin/sh
case "$1 $2 $3" in
"-I -c "*) echo ` + fakeVersion + `; echo "$0" ;;
"-m venv "*)
	echo venv >> "$HOME/calls"
	mkdir -p "$3/bin" "$3/lib" && cp "$0" "$3/bin/python" ;;
"-m pip install")
	echo pip >> "$HOME/calls"
	[ ! -e "$HOME/gate" ] || cat "$HOME/gate"
	while [ "$1" != -r ]; do shift; done
	! grep nowhere "$2" || { echo "ERROR: No matching distribution found for nowhere"; exit 1; }
	echo one > "$(dirname "$2")/lib/tiny.py" ;;
*) exit 2 ;;
esac
`

// faked is a bundle that needs packages, on a node whose only Python is the fake. Home is where that says what it does.
func faked(t *testing.T, requirements ...string) (o Options, home string) {
	t.Helper()
	home = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "python3"), []byte(fakePython), 0o755))
	o = pack(t, bundle.Manifest{Runtime: "sklearn", Python: fakeVersion, Entry: "model.pkl", Requirements: requirements}, nil)
	o.Environ = with(with(o.Environ, "HOME", home), "PATH", home+":/usr/bin:/bin")
	return o, home
}

func wantCalls(t *testing.T, home string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "calls"))
	if got := strings.Fields(string(text)); err != nil || !slices.Equal(got, want) {
		t.Errorf("the interpreter was asked for %q, want %q, %v", got, want, err)
	}
}

func TestSeveralStartsBuildOneEnvironment(t *testing.T) {
	o, home := faked(t, "tiny==1.0")
	var all sync.WaitGroup
	images := make(chan Image, 3)
	for range cap(images) {
		all.Go(func() {
			mine := o
			mine.Exec = func(i Image) error { images <- i; return nil }
			if err := Run(t.Context(), mine); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(images)
	wantCalls(t, home, "venv", "pip")
	python := filepath.Join(o.Work, "environments", left(t, o, "environments")[0], "bin", "python")
	for image := range images {
		if image.Path != python {
			t.Errorf("%s is started, want %s", image.Path, python)
		}
	}
	run(t, o) // finds it
	wantCalls(t, home, "venv", "pip")
}

func TestAChangedEnvironmentIsBuiltAgain(t *testing.T) {
	o, home := faked(t, "tiny==1.0")
	run(t, o)
	found, err := filepath.Glob(filepath.Join(o.Work, "environments", "*", "lib", "tiny.py"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	require.NoError(t, flip(found[0]))
	run(t, o) // the one before has ended at once
	if text, err := os.ReadFile(found[0]); err != nil || string(text) != "one\n" {
		t.Errorf("it is %q, %v", text, err)
	}
	wantCalls(t, home, "venv", "pip", "venv", "pip")
}

func TestAnEnvironmentThatCannotBeBuiltLeavesNothing(t *testing.T) {
	o, home := faked(t, "nowhere==1.0")
	if text := refused(t, o); !strings.Contains(text, "No matching distribution found for nowhere") {
		t.Error(text)
	}
	if environments := left(t, o, "environments"); len(environments) > 0 {
		t.Errorf("there is %v", environments)
	}
	wantCalls(t, home, "venv", "pip")
}

// TestAnEnvironmentIsBuiltAfterALauncherThatWasKilled: what the killed one has started keeps others waiting, and then it is
// built from the beginning.
func TestAnEnvironmentIsBuiltAfterALauncherThatWasKilled(t *testing.T) {
	o, home := faked(t, "tiny==1.0")
	path := filepath.Join(home, "gate")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	first := launcher(t, o)
	require.NoError(t, first.Start())
	gate, err := os.OpenFile(path, os.O_WRONLY, 0) // returns when pip reads from it
	require.NoError(t, err)
	defer gate.Close()
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	if built := left(t, o, "environments"); len(built) != 1 || (environment{dir: filepath.Join(o.Work, "environments", built[0])}).ready() {
		t.Fatalf("there is no half of an environment: %v", built)
	}
	log := &awaited{text: "waiting for another start", seen: make(chan struct{})}
	o.Log, o.Exec = log, func(Image) error { return nil }
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	select {
	case <-log.seen:
	case err := <-done:
		t.Fatalf("it did not wait for what the first has started: %v", err)
	}
	wantCalls(t, home, "venv", "pip")
	require.NoError(t, os.Remove(path))
	gate.Close()
	if err := <-done; err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, log))
	}
	wantCalls(t, home, "venv", "pip", "venv", "pip")
}

// awaited is a log that says when it has a text.
type awaited struct {
	journal.Journal
	text string
	seen chan struct{}
	once sync.Once
}

func (a *awaited) Write(b []byte) (int, error) {
	n, err := a.Journal.Write(b)
	if strings.Contains(a.String(), a.text) {
		a.once.Do(func() { close(a.seen) })
	}
	return n, err
}
