//go:build edge

package edge

import (
	"context"
	"testing"
	"time"
)

// attack is something that is done to a server.
type attack struct {
	name string
	run  func(t *testing.T, s *server) // until its clients have left
	// outside is what it may take of memory beside the budget.
	outside int64
	// burst is what the p99 may be of an attack that keeps two cores busy for a moment, whatever the order is in
	// which queries get them: answers of a gigabyte within a second, 128 MB of bodies.
	burst time.Duration
}

const (
	// quietFor is how long a server is left alone before an attack.
	quietFor = 2 * time.Second
	// quietEnough is what counts as quiet, and under is how many times as long a query may take.
	quietEnough = 5 * time.Millisecond
	under       = 3
	// underBare is how many times as long as with a bare server at that time it may take, too: attackers and
	// servers share two cores.
	underBare = 2
	// tries is how often an attack is tried whose p99 was too high: what else the machine does
	// is not the server's, and a default is an answer that was late. Errors, and what is held, have one.
	tries = 5
	// within is how soon all is to be back.
	within = time.Minute
)

// perConnection is the memory of a connection that is open: 16 KiB for its header, 16 for a
// small body and its answer, two stacks of 8, and as much again that the collector has not
// come to.
const perConnection = 64 << 10

// slack is memory that is nobody's while an attack goes on: Go lets a heap double before it
// collects, both what the process needs by itself, some 30 MiB, and the cache of predictions, 32.
// rest is what may be left after it: the process gives back what is more than 64 MiB, and the
// cache has filled.
const (
	slack = 128 << 20
	rest  = 96 << 20
)

// strayFiles and strayGoroutines are how many may be left that come and go by themselves.
const (
	strayFiles      = 8
	strayGoroutines = 24
)

// sufferAll puts a server under one attack after another, and looks whether all its goroutines
// end: those that have served connections wait some seconds for others.
func (s *server) sufferAll(t *testing.T, list ...attack) {
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) { s.suffer(t, a) })
	}
	over := time.Now().Add(within)
	for {
		left := s.state(t).goroutines
		if left <= s.first.goroutines+strayGoroutines {
			return
		}
		if time.Now().After(over) {
			t.Errorf("%d goroutines are left %v after the last attack; before the first were %d", left, within, s.first.goroutines)
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// suffer puts a server under an attack, and holds it to what it promises.
func (s *server) suffer(t *testing.T, a attack) {
	t.Helper()
	var one result
	for try := 1; ; try++ {
		one = s.once(t, a)
		late := one.attacked.p99 > one.bearable()
		if !late || try == tries || t.Failed() || one.attacked.errors > 0 || one.peak > one.allowed || !one.isBack() {
			break
		}
		t.Logf("p99 was %v, and is measured again: %v", one.attacked.p99, one)
	}
	results = append(results, one)
	t.Log(one)
	one.hold(t, a)
}

// once attacks once and waits until all is back.
func (s *server) once(t *testing.T, a attack) result {
	t.Helper()
	one := result{name: a.name, burst: a.burst, base: s.first, allowed: s.first.memory + budget + slack + a.outside}
	begun := time.Now()
	time.Sleep(quietFor)
	one.quiet = s.steady.between(begun, time.Now())

	stop := peak(s.cmd.Process.Pid)
	begun = time.Now()
	a.run(t, s)
	left := time.Now()
	time.Sleep(4 * steadyEvery) // until the last of its neighbours is answered
	one.attacked, one.bare = s.steady.between(begun, left), s.reference.between(begun, left)
	one.lasted = left.Sub(begun)
	one.peak = stop()

	ctx, cancel := context.WithDeadline(t.Context(), left.Add(within))
	defer cancel()
	for {
		one.left = s.state(t)
		if one.isBack() || ctx.Err() != nil {
			one.back = time.Since(left)
			return one
		}
		time.Sleep(time.Second) // a page of metrics is memory, too
	}
}
