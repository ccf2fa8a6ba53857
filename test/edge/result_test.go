//go:build edge

package edge

import (
	"fmt"
	"testing"
	"time"
)

// result is what came of one attack.
type result struct {
	name            string
	lasted          time.Duration
	quiet, attacked view
	bare            view // of the bare server while the attack went on
	base, left      state
	peak, allowed   int64 // memory
	back            time.Duration
	burst           time.Duration // see attack
}

// bearable is what the p99 may be.
func (r result) bearable() time.Duration {
	return max(under*max(r.quiet.p99, quietEnough), underBare*r.bare.p99, r.burst)
}

// isBack says whether the process holds no more memory and descriptors than before.
func (r result) isBack() bool {
	return r.left.memory <= r.base.memory+rest && r.left.descriptors <= r.base.descriptors+strayFiles
}

// hold holds a result to what is promised.
func (r result) hold(t *testing.T, a attack) {
	t.Helper()
	if r.attacked.errors > 0 || r.attacked.defaults > 0 {
		t.Errorf("the steady client saw %d errors and %d defaults in %d queries, the first %s", r.attacked.errors, r.attacked.defaults, r.attacked.sent, r.attacked.problem)
	}
	if r.attacked.p99 > r.bearable() {
		t.Errorf("the steady client's p99 was %v, %v in quiet, and %v with a bare server: at most %v may be", r.attacked.p99, r.quiet.p99, r.bare.p99, r.bearable())
	}
	if r.peak > r.allowed {
		t.Errorf("the process took %d MiB, and may take %d", r.peak>>20, r.allowed>>20)
	}
	if !r.isBack() {
		t.Errorf("%v after it %d MiB and %d descriptors are held; before it were %d and %d",
			within, r.left.memory>>20, r.left.descriptors, r.base.memory>>20, r.base.descriptors)
	}
}

func (r result) String() string {
	return fmt.Sprintf("%-44s %5.1f %5d %4d %4d %8.1f %8.1f %8.1f %8.1f %6d %6d %6d %6d %6.1f %5d %5d",
		r.name, r.lasted.Seconds(), r.attacked.sent, r.attacked.errors, r.attacked.defaults, ms(r.quiet.p99), ms(r.bare.p99), ms(r.attacked.p99), ms(r.attacked.longest),
		r.base.memory>>20, r.peak>>20, r.allowed>>20, r.left.memory>>20, r.back.Seconds(), r.left.descriptors-r.base.descriptors, r.left.goroutines-r.base.goroutines)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// printResults prints what the steady client saw, in milliseconds, and what the process took, in MiB.
func printResults(all []result) {
	if len(all) == 0 {
		return
	}
	fmt.Printf("\n%-44s %5s %5s %4s %4s %8s %8s %8s %8s %6s %6s %6s %6s %6s %5s %5s\n",
		"attack", "s", "sent", "err", "def", "quiet99", "bare99", "p99", "longest", "base", "peak", "may", "after", "back s", "files", "gor.")
	for _, r := range all {
		fmt.Println(r)
	}
}
