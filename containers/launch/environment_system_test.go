//go:build unix && system

package launch

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

func TestEnvironmentIsBuiltOnceAndUsed(t *testing.T) {
	t.Parallel()
	o := requiring(t, "Tiny_Package==1.0")
	serve, asked := make(chan struct{}), make(chan string, 10)
	close(serve)
	o.Environ = append(o.Environ, "PIP_FIND_LINKS="+index(t, wheel(t, "tiny_package", "1.0"), asked, serve), "PIP_NO_CACHE_DIR=1")

	var starts atomic.Int32
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			mine := o
			mine.Exec = func(image Image) error {
				starts.Add(1)
				_, err := os.Stat(image.Path)
				return err
			}
			if err := Run(t.Context(), mine); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	log := o.Log.(*journal.Journal).String()
	if n := starts.Load(); n != 3 || len(asked) != 1 || strings.Count(log, "installing 1 package on") != 1 {
		t.Fatalf("%d of 3 were started, pip asked for %d wheels:\n%s", n, len(asked), log)
	}
	for _, want := range []string{": unpacking 1 files", ": collecting Tiny_Package==1.0, package 1 (", ": ready (", "waiting for another start"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}

	// Now as a process, which becomes the model.
	cmd := launcher(t, o)
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	var m model
	m.read(t, line)
	dir := filepath.Join(o.Work, "bundles", strings.TrimPrefix(o.Digest, "sha256:"))
	environment := filepath.Join(o.Work, "environments", left(t, o, "environments")[0])
	if len(m.Arguments) != 1 || m.Arguments[0] != dir || m.Folder != dir || !strings.HasPrefix(m.File, filepath.Join(o.Work, "sdk")) {
		t.Errorf("the model is %+v", m)
	}
	if m.Packages["tiny-package"] == "" && m.Packages["tiny_package"] != "1.0" || !strings.HasPrefix(m.Python, environment) {
		t.Errorf("the model has %v, from %s", m.Packages, m.Python)
	}
	if m.Environment["TOPSAIL_SIDECAR"] == "" || !strings.HasPrefix(m.Environment["PATH"], environment) {
		t.Errorf("the model's environment is %v", m.Environment)
	}

	// What a model uses is not swept, and all of it is when the model has ended.
	if removed, err := Sweep(o.Work, 0); err != nil || len(removed) != 0 {
		t.Errorf("a sweep took %v from a running model, %v", removed, err)
	}
	input.Close()
	require.NoError(t, cmd.Wait())
	if removed, err := Sweep(o.Work, time.Hour); err != nil || len(removed) != 0 {
		t.Errorf("a sweep took %v, which was just used, %v", removed, err)
	}
	if removed, err := Sweep(o.Work, 0); err != nil || len(removed) != 3 {
		t.Errorf("a sweep took %v, %v", removed, err)
	}
	for _, kind := range []string{"bundles", "environments", "sdk"} {
		if entries, err := os.ReadDir(filepath.Join(o.Work, kind)); err != nil || len(entries) != 0 {
			t.Errorf("in %s there is %v, %v", kind, entries, err)
		}
	}
}

func TestALauncherIsKilledWhileItBuilds(t *testing.T) {
	t.Parallel()
	o := requiring(t, "tiny==1.0")
	serve, asked := make(chan struct{}), make(chan string, 10)
	o.Environ = append(o.Environ, "PIP_FIND_LINKS="+index(t, wheel(t, "tiny", "1.0"), asked, serve), "PIP_NO_CACHE_DIR=1",
		"PIP_DEFAULT_TIMEOUT=120") // of pip for its wheel
	first := launcher(t, o)
	require.NoError(t, first.Start())
	select {
	case <-asked: // pip is in the middle
	case <-time.After(patience):
		t.Fatal("pip asked for nothing")
	}
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	built := left(t, o, "environments")
	if len(built) != 1 || (environment{dir: filepath.Join(o.Work, "environments", built[0])}).ready() {
		t.Fatalf("there is no half of an environment: %v", built)
	}

	// Its pip is still there and holds the lock. It ends when it gets its wheel.
	var image Image
	o.Exec = func(i Image) error {
		image = i
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	deadline := time.After(patience)
	for !strings.Contains(o.Log.(*journal.Journal).String(), "waiting for another start") {
		select {
		case err := <-done:
			t.Fatalf("it did not wait for what the first has started: %v", err)
		case <-deadline:
			t.Fatalf("it neither waits nor goes on:\n%s", o.Log)
		case <-time.After(tryEvery):
		}
	}
	close(serve)
	require.NoError(t, <-done)
	site, err := filepath.Glob(filepath.Join(o.Work, "environments", built[0], "lib", "python*", "site-packages", "tiny.py"))
	if err != nil || len(site) != 1 || filepath.Dir(filepath.Dir(image.Path)) != filepath.Join(o.Work, "environments", built[0]) {
		t.Errorf("%v is installed, %v; the image is %+v", site, err, image)
	}
	if log := o.Log.(*journal.Journal).String(); strings.Count(log, ": installing 1 package on") != 1 {
		t.Errorf("it did not build again:\n%s", log)
	}
}

func TestAPackageThatIsNowhere(t *testing.T) {
	t.Parallel()
	o := requiring(t, "no-such-package==1.0")
	text := refused(t, o)
	for _, want := range []string{"environment ", "cannot install", "No matching distribution found for no-such-package", "wheelhouse"} {
		if !strings.Contains(text, want) {
			t.Errorf("the error has no %q: %s", want, text)
		}
	}
	if environments := left(t, o, "environments"); len(environments) > 0 {
		t.Errorf("there is %v", environments)
	}
}
