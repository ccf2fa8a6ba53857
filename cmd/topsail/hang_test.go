//go:build system

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// hangingModel hangs when it is told to: in a lock, where the other threads of its process
// go on, or in a call of C that holds the interpreter's lock, where none of them does.
const hangingModel = `
import ctypes, subprocess, threading

subprocess.Popen(["sleep", "1000"])

def predict(texts):
    if "lock" in texts:
        threading.Event().wait()
    if "gil" in texts:
        ctypes.PyDLL(None).sleep(1000)
    return [t.upper() for t in texts]
`

func TestAPythonModelThatHangsIsStartedAnew(t *testing.T) {
	for _, how := range []string{"lock", "gil"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeModel(t, dir, hangingModel)
			in := start(t, dir, pythonConfig(t, dir)).ready()
			answers := func() bool { return in.ask(`{"input": "hello", "no_cache": true}`).Output == "HELLO" }
			for range 4 { // so that it is known what it takes
				in.until("an answer", answers)
			}
			before, begun := in.descendants(), time.Now()
			if a := in.ask(fmt.Sprintf(`{"input": %q}`, how)); !a.Default {
				t.Fatalf("it did not hang: %+v", a)
			}
			in.until("an answer of the next process", answers)
			if took := time.Since(begun); took < 10*time.Second {
				t.Errorf("it was taken for hung after %v", took)
			}
			for _, pid := range in.descendants() {
				if slices.Contains(before, pid) {
					t.Errorf("process %d of the one that hung is left", pid)
				}
			}
		})
	}
}
