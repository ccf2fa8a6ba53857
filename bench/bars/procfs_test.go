package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const fields = " S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0 5 0 99 1000 20"
	for _, name := range []string{"(bench)", "(a b)", "(a) R 1 (b)"} {
		got, err := parseStat([]byte("4242 " + name + fields))
		if want := 1680 * time.Millisecond; err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
	for _, bad := range []string{"", "4242", "4242 (bench) S 1 2", "4242 (bench)" + strings.Replace(fields, "123", "x", 1), "4242 (bench)" + strings.Replace(fields, "45", "x", 1)} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func TestParseStatm(t *testing.T) {
	if got, err := parseStatm([]byte("765 441 413 5 0 123 0\n")); err != nil || got != 441 {
		t.Errorf("got %d, %v; want 441", got, err)
	}
	for _, bad := range []string{"", "765", "765 x 413"} {
		if got, err := parseStatm([]byte(bad)); err == nil {
			t.Errorf("%q was read as %d", bad, got)
		}
	}
}

func TestTheTimeOfAProcessAndThoseBelowIt(t *testing.T) {
	child := exec.CommandContext(t.Context(), "sh", "-c", "echo; read line")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	its, err := cpuTime(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := cpuTimeOfAll(os.Getpid()); err != nil || all < its {
		t.Errorf("all have used %v, and one of them %v; %v", all, its, err)
	}
	in.Close()
	_ = child.Wait() // it fails to read at the end of its input
	if _, err := cpuTimeOfAll(child.Process.Pid); err == nil {
		t.Error("a process that has ended has a time")
	}
}

func TestOurOwnProcessHasUsedSome(t *testing.T) {
	memory, err := resident(os.Getpid())
	if err != nil || memory < 1<<20 {
		t.Errorf("resident memory is %d bytes, %v", memory, err)
	}
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
	}
	if used, err := cpuTime(os.Getpid()); err != nil || used < tick {
		t.Errorf("processor time is %v, %v", used, err)
	}
}
