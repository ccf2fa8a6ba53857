package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
)

func TestWhatAMetricsPageAddsUpTo(t *testing.T) {
	page := []byte("# HELP a b\na{x=\"1\"} 2\na{x=\"2\"} 3.5\nab 100\n")
	if got := sum(page, "a{"); got != 5.5 {
		t.Errorf("%v, want 5.5", got)
	}
}

func TestQuantilesOfQuestions(t *testing.T) {
	var a asked
	for i := range 101 {
		a.took = append(a.took, time.Duration(100-i)*time.Millisecond)
	}
	if a.p99() != 99 || a.quantile(0.5) != 50 || (&asked{}).p99() != 0 {
		t.Errorf("p99 %v, p50 %v", a.p99(), a.quantile(0.5))
	}
}

func TestDescendants(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	var pids []int
	for deadline := time.Now().Add(time.Minute); len(pids) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var err error
		if pids, err = descendants(os.Getpid(), "sleep\x0060"); err != nil {
			t.Fatal(err)
		}
	}
	if len(pids) != 1 || slices.Contains(pids, cmd.Process.Pid) {
		t.Errorf("the processes are %v, below %d", pids, cmd.Process.Pid)
	}
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill()
		}
	}
}

func TestTheModelsOfHostsAreBundles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.zip")
	digest, err := hostOf{code: hostedCode, weights: hostedBytes}.bundle(path, "3.11", 7)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := bundle.Digest(f); err != nil || got != digest {
		t.Errorf("its digest is %s, %v", got, err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := bundle.Open(f, info.Size()); err != nil || b.Verify(t.Context()) != nil {
		t.Errorf("it is no bundle: %v", err)
	}
}
