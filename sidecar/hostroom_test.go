package sidecar

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

// fetching takes so long.
func fetching(took time.Duration) func(*Config) {
	return func(c *Config) {
		c.Fetch = func(ctx context.Context, _ rpc.Load) (string, int64, error) {
			select {
			case <-time.After(took):
			case <-ctx.Done():
			}
			return "x", 1000, ctx.Err()
		}
	}
}

// wish asks for a version, and waits for nothing.
func (g *gateway) wish(model string) {
	g.conn.Send(rpc.KindLoad, 0, rpc.AppendLoad(nil, loadOf(model)))
}

func (f *fakeHost) wantAlive(r *rig) {
	f.t.Helper()
	if r.stalled != 0 || f.dead() {
		f.t.Errorf("stalled %d times, dead %v", r.stalled, f.dead())
	}
}

// Who asks again for what is being loaded has it loaded once, also when it had to make
// room meanwhile or failed.
func TestAWishIsRepeated(t *testing.T) {
	for name, c := range map[string]struct{ wrong, want string }{
		"and its turn is over": {"", "+a -a +b"},
		"and it fails":         {"broken", "+a +b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := hostRig(t, 44, fetching(200*ms)) // the process and one version
				f, g := r.fakeHost(), r.gateway()
				f.wrong["a"] = c.wrong
				for _, name := range []string{"a", "b", "a"} {
					g.wish(name)
					pass(50 * ms)
				}
				pass(20 * time.Second)
				f.wantSeen(c.want)
			})
		})
	}
}

// What would not fit alone has nothing unloaded.
func TestAVersionThatCannotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.size["huge"] = 60 * mib
		g.load(loadOf("huge"))
		for _, name := range []string{"a", "b", "c"} {
			g.load(loadOf(name))
		}
		pass(10 * time.Second)
		g.load(loadOf("huge"))
		f.wantSeen("+huge -huge +a +b +c")
		g.wantState("huge", rpc.StateGone)
	})
}

// Where all are busy for as long as one may wait, the one that was loaded goes again, and
// the container stays.
func TestNoRoomForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, nil)
		f, g := r.fakeHost(), r.gateway()
		f.do(slow(20 * ms))
		f.size["v"] = 30 * mib
		g.load(loadOf("a"))
		g.load(loadOf("b"))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, name := range []string{"a", "b"} {
			go func() {
				for ctx.Err() == nil {
					g.ask(g.of(name).ID, 5*time.Second, tagged(1))
					time.Sleep(15 * ms)
				}
			}()
		}
		pass(100 * ms)
		g.load(loadOf("v"))
		pass(holdWithin + 10*time.Second)
		stop()
		pass(time.Second)
		f.wantAlive(r)
		f.wantSeen("+a +b +v -v")
	})
}

// A bundle that takes its time leaves the container all of its own.
func TestASlowFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, fetching(holdWithin-time.Second))
		f, g := r.fakeHost(), r.gateway()
		f.slow["a"] = 5 * time.Second
		g.load(loadOf("a"))
		pass(holdWithin + 5*time.Second)
		f.wantAlive(r)
		g.wantState("a", rpc.StateReady)
	})
}

// A version that took long to load is not the one that was asked longest ago: the queries
// for it are on their way.
func TestAFreshVersionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 55, nil) // the process and two versions
		f, g := r.fakeHost(), r.gateway()
		f.slow["v"] = time.Second
		g.load(loadOf("x"))
		g.wish("v")
		pass(50 * ms)
		g.wish("w")
		pass(500 * ms)
		g.ask(g.of("x").ID, time.Second, tagged(1)) // while v is being loaded
		pass(500 * ms)
		f.wantSeen("+x +v -x +w")
	})
}

// Two versions, and room for one: each is loaded for queries that come a moment later.
func TestTwoTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 44, nil)
		f := r.fakeHost()
		f.slow["a"], f.slow["b"] = 20*ms, 20*ms
		gateways := map[string]*gateway{"a": r.gateway(), "b": r.gateway()}
		ctx, stop := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		for name, g := range gateways {
			asking.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(ms) {
					if g.of(name).State == rpc.StateReady {
						time.Sleep(ms)
						g.ask(g.of(name).ID, time.Second, tagged(1))
						time.Sleep(5 * ms)
					} else {
						g.wish(name)
					}
				}
			})
		}
		pass(10 * time.Second)
		stop()
		asking.Wait()
		pass(time.Second)
		for name, g := range gateways {
			if n := g.statuses()[rpc.StatusOK]; n < 20 {
				t.Errorf("%s was answered %d times", name, n)
			}
		}
	})
}

// What is being fetched when the sidecar is to stop is not loaded any more.
func TestNothingIsLoadedWhileItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostRig(t, 66, fetching(time.Second))
		f, g := r.fakeHost(), r.gateway()
		f.do(slow(2 * time.Second))
		g.wish("a")
		pass(1100 * ms)
		g.ask(g.of("a").ID, 5*time.Second, tagged(1))
		pass(0)
		g.wish("b")
		r.stop()
		pass(1500 * ms)
		f.wantSeen("+a")
		if g.of("b").State == rpc.StateReady {
			t.Error("a version is ready while the sidecar drains")
		}
		pass(30 * time.Second)
	})
}
