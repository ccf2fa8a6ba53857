package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// bench is what all cases share.
type bench struct {
	options
	self   string // the path of this program
	dir    string // for files that live as long as the run
	wrk    *wrk
	family family
}

func newBench(opt options) (*bench, error) {
	path, err := exec.LookPath("wrk")
	if err != nil {
		return nil, errors.New("wrk is not installed: apt-get install wrk, then run this again")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the path of this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "topsail-bench-")
	if err != nil {
		return nil, err
	}
	// A child is killed when the thread that started it ends, so that thread has
	// to last as long as we do.
	runtime.LockOSThread()
	b := &bench{options: opt, self: self, dir: dir, wrk: &wrk{path: path, script: filepath.Join(dir, "post.lua")}}
	return b, os.WriteFile(b.wrk.script, []byte(wrkScript), 0o600)
}

// close ends all processes that are left.
func (b *bench) close() {
	b.family.stop()
	b.freeShared()
	_ = os.RemoveAll(b.dir) // it is temporary anyway
}

// period is the length of a run.
func (b *bench) period() time.Duration { return time.Duration(b.Seconds) * time.Second }

// say tells people how far we are.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// alternate takes one sample of each variant per round. Each round starts with
// another variant, so that what drifts, or is left behind by the variant before,
// hits all alike. The samples come by variant.
func alternate[T any](rounds int, variants ...func() (T, error)) ([][]T, error) {
	samples := make([][]T, len(variants))
	for round := range rounds {
		for i := range variants {
			v := (round + i) % len(variants)
			sample, err := variants[v]()
			if err != nil {
				return nil, err
			}
			samples[v] = append(samples[v], sample)
		}
	}
	return samples, nil
}
