//go:build unix

package process

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

// stuckAfter is when a killed process that is still there is worth a warning.
const stuckAfter = 5 * time.Second

const (
	firstDelay = 200 * time.Millisecond // between starts
	lastDelay  = 30 * time.Second
	healthyRun = time.Minute // after which the wait begins anew
)

// Child keeps one command running. Run owns it; the other methods may be called
// at any time from any goroutine.
type Child struct {
	spec    Spec
	guard   []string
	log     *slog.Logger
	out     *output
	now     atomic.Pointer[Snapshot]             // written by Run only
	restart chan struct{}                        // capacity 1: a request, not a count
	hung    chan string                          // the same, with the reason: see Kill
	after   func(time.Duration) <-chan time.Time // of the waits between starts
}

// New prepares a child and starts nothing. The command line that runs RunGuard
// is guard followed by the command: for example the path of our own executable,
// "guard", "--". Logs name the replica in the attribute "replica".
func New(spec Spec, guard []string, log *slog.Logger) *Child {
	log = log.With("replica", spec.Name)
	c := &Child{
		spec:    spec.withDefaults(),
		guard:   guard,
		log:     log,
		out:     &output{log: log},
		restart: make(chan struct{}, 1),
		hung:    make(chan string, 1),
		after:   time.After,
	}
	c.now.Store(&Snapshot{Since: time.Now()})
	return c
}

// Snapshot is where the child stands now.
func (c *Child) Snapshot() Snapshot { return *c.now.Load() }

// Tail returns up to n of the last lines the command wrote, oldest first. It
// remembers 200 lines, those of earlier runs included.
func (c *Child) Tail(n int) []string { return c.out.tail.last(n) }

// Restart asks for a graceful stop and a start right after it, or for a start
// at once where the child is backing off. It does not wait for either.
func (c *Child) Restart() {
	select {
	case c.restart <- struct{}{}:
	default: // one request is waiting already
	}
}

// Kill ends the command and all that it has started at once, with SIGKILL, for the reason
// that snapshots then have; it starts again as one that ended on its own does. It is for one
// that hangs, which a SIGTERM would not reach. It does not wait.
func (c *Child) Kill(reason string) {
	select {
	case c.hung <- reason:
	default:
	}
}

// Run keeps the command running until ctx ends. Then the command gets SIGTERM,
// and SIGKILL after the grace period; Run returns when none of its processes is
// left. A Child runs once at a time.
func (c *Child) Run(ctx context.Context) {
	wait := retry.Backoff{First: firstDelay, Most: lastDelay}
	reason, asked := "", false
	for first := true; ctx.Err() == nil; first = false {
		begin := time.Now()
		c.starting(first, reason)
		reason, asked = c.runOnce(ctx)
		if !asked && ctx.Err() == nil {
			if time.Since(begin) >= healthyRun {
				wait.Reset()
			}
			asked = c.backOff(ctx, reason, wait.Next())
		}
		if asked {
			wait.Reset()
		}
	}
	c.set(func(s *Snapshot) { s.State, s.Reason = Stopped, reason })
}

// starting begins a run, which also serves any restart asked for until now.
func (c *Child) starting(first bool, reason string) {
	select {
	case <-c.hung: // that was the run before
	default:
	}
	select {
	case <-c.restart:
	default:
	}
	c.set(func(s *Snapshot) {
		s.State, s.Reason = Starting, reason
		if !first {
			s.Restarts++
		}
	})
}

// backOff waits, and says whether a restart was asked for meanwhile.
func (c *Child) backOff(ctx context.Context, reason string, d time.Duration) (asked bool) {
	c.log.Warn("replica ended", "reason", reason, "starts_again_in", d.Round(time.Millisecond))
	c.set(func(s *Snapshot) { s.State, s.Reason = BackingOff, reason })
	select {
	case <-ctx.Done():
	case <-c.after(d):
	case <-c.restart:
		return true
	}
	return false
}

// runOnce runs the command once, until nothing of it is left, and says why it
// ended and whether that was for a restart.
func (c *Child) runOnce(ctx context.Context) (reason string, asked bool) {
	c.out.tail.begin()
	run, err := start(c.spec, c.guard, c.out)
	if err != nil {
		return "cannot start: " + err.Error(), false
	}
	done, restart := ctx.Done(), c.restart
	var grace <-chan time.Time
	hung := ""
	stuck := time.NewTimer(math.MaxInt64)
	defer stuck.Stop()
	for {
		select {
		case pid, ok := <-run.started:
			if !ok {
				if asked || ctx.Err() != nil {
					return cmp.Or(hung, run.reason), asked
				}
				return cmp.Or(hung, c.because(run.reason)), asked
			}
			c.set(func(s *Snapshot) { s.State, s.PID = Running, pid })
		case <-done:
			done, restart, grace = nil, nil, c.terminate(run)
		case <-restart:
			asked = true
			done, restart, grace = nil, nil, c.terminate(run)
		case hung = <-c.hung:
			run.kill()
			stuck.Reset(stuckAfter)
		case <-grace:
			run.kill()
			stuck.Reset(stuckAfter)
		case <-stuck.C:
			c.warnStuck()
		}
	}
}

func (c *Child) terminate(r *run) (grace <-chan time.Time) {
	r.terminate()
	return time.After(c.spec.Grace)
}

func (c *Child) warnStuck() {
	c.log.Warn("replica's processes were killed but still exist: look for state D in ps, a device may hang")
}

// set publishes the next snapshot, made from a copy of the last one.
func (c *Child) set(change func(*Snapshot)) {
	next := c.Snapshot()
	next.Since, next.PID = time.Now(), 0
	change(&next)
	c.now.Store(&next)
	if c.spec.OnChange != nil {
		c.spec.OnChange(next)
	}
}
