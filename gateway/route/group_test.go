package route

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// standing makes a group of replicas that no connection belongs to.
func standing(n int) *Group {
	g := &Group{}
	for i := range n {
		r := newReplica(serving.Endpoint{Replica: fmt.Sprint("r", i)}, "test", nil, slog.New(slog.DiscardHandler), func() {})
		g.targets = append(g.targets, &Target{replica: r})
	}
	return g
}

func (g *Group) load(i int) *load { return &g.targets[i].replica.load }

func (g *Group) eject(i int, now time.Time) {
	for range ejectAfter {
		g.targets[i].replica.health.fail(now)
	}
}

// shares counts whom Pick picks, of n.
func (g *Group) shares(n int, not *Target, now time.Time) []int {
	shares := make([]int, len(g.targets))
	for range n {
		t := g.Pick(0, not, now)
		for i := range g.targets {
			if g.targets[i] == t {
				shares[i]++
			}
		}
	}
	return shares
}

func TestAnEmptyGroupHasNobody(t *testing.T) {
	var none *Group
	if none.Len() != 0 || none.Pick(0, nil, time.Now()) != nil || (&Group{}).Pick(0, nil, time.Now()) != nil {
		t.Error("somebody was picked")
	}
}

// TestPick states what holds for every pick, whatever state the replicas are in.
func TestPick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		g := standing(rapid.IntRange(1, 6).Draw(t, "replicas"))
		ejected := map[*Target]bool{}
		for i, target := range g.targets {
			l := g.load(i)
			l.service[0].value.Store(rapid.SampledFrom([]int64{0, 1, 1e6, 5e9}).Draw(t, "service time"))
			l.ask(0, rapid.Int64Range(0, maxInFlight).Draw(t, "in flight"))
			l.report(0, time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "wait")), now)
			if rapid.Bool().Draw(t, "ejected") {
				g.eject(i, now)
				ejected[target] = true
			}
		}
		if rapid.Bool().Draw(t, "twice") { // two ids of one version on one replica
			g.targets = append(g.targets, &Target{replica: g.targets[0].replica, model: 1})
			ejected[g.targets[len(g.targets)-1]] = ejected[g.targets[0]]
		}
		var not *Target
		if rapid.Bool().Draw(t, "one excluded") {
			not = rapid.SampledFrom(g.targets).Draw(t, "not")
		}
		others, usable := 0, 0
		for _, target := range g.targets {
			if not == nil || target.replica != not.replica {
				others++
				if !ejected[target] {
					usable++
				}
			}
		}
		for range 20 {
			got := g.Pick(0, not, now)
			switch {
			case (got == nil) != (others == 0):
				t.Fatalf("picked %v of %d others", got, others)
			case got != nil && not != nil && got.replica == not.replica:
				t.Fatal("picked the excluded replica")
			case got != nil && ejected[got] && usable > 0:
				t.Fatalf("picked an ejected replica, with %d usable", usable)
			}
		}
	})
}

// Of two the cheaper is picked always; of more the dearest never.
func TestPickPrefersTheCheaper(t *testing.T) {
	tests := map[string]func(l *load, now time.Time){
		"fewer in flight":   func(l *load, now time.Time) { l.ask(0, 4) },
		"a shorter queue":   func(l *load, now time.Time) { l.report(0, 10*time.Millisecond, now) },
		"faster service":    func(l *load, now time.Time) { l.service[0].value.Store(1e6 + 1) },
		"no failure":        func(l *load, now time.Time) { l.failure(0, now) },
		"no failure lately": func(l *load, now time.Time) { l.failure(0, now.Add(-reportFresh/2)) },
	}
	for name, worsen := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now().Add(time.Hour)
			for n := 2; n <= 5; n++ {
				g := standing(n)
				for i := range n {
					g.load(i).service[0].value.Store(1e6)
				}
				worsen(g.load(1), now)
				if shares := g.shares(200, nil, now); shares[1] != 0 {
					t.Errorf("the dearest of %d is picked: %v", n, shares)
				}
			}
		})
	}
}

func TestEqualReplicasShareAlike(t *testing.T) {
	const picks = 30_000
	now := time.Now()
	fair := func(t *testing.T, what string, shares []int, out ...int) {
		t.Helper()
		in := len(shares) - len(out)
		for _, i := range out {
			if shares[i] != 0 {
				t.Errorf("%s: replica %d is picked: %v", what, i, shares)
			}
			shares[i] = picks / in
		}
		for i, n := range shares {
			if want := picks / in; n < want*95/100 || n > want*105/100 {
				t.Errorf("%s: replica %d got %d of %d picks, want %d: %v", what, i, n, picks, want, shares)
			}
		}
	}
	for _, n := range []int{2, 3, 5} {
		fair(t, fmt.Sprint(n), standing(n).shares(picks, nil, now))
	}
	g := standing(4)
	fair(t, "one excluded", g.shares(picks, g.targets[2], now), 2)
	g.eject(1, now)
	fair(t, "one ejected", g.shares(picks, nil, now), 1)
	fair(t, "one ejected, one excluded", g.shares(picks, g.targets[2], now), 1, 2)
	for _, i := range []int{0, 2, 3} {
		g.eject(i, now)
	}
	fair(t, "all ejected", g.shares(picks, nil, now))
}

// A replica that is due for a probe gets exactly one query, also while it is by far
// the dearest: else it would stay out for as long as the others are cheaper.
func TestADueReplicaIsProbed(t *testing.T) {
	for try := range 40 {
		n, now := 2+try%4, time.Now()
		g := standing(n)
		for i := range n {
			g.load(i).service[0].value.Store(1e6)
		}
		g.load(0).service[0].value.Store(int64(time.Minute))
		g.eject(0, now)
		now = now.Add(ejectMin)
		if shares := g.shares(100, nil, now); shares[0] != 1 {
			t.Errorf("of %d replicas the due one was probed %d times", n, shares[0])
		}
		g.targets[0].replica.health.succeed()
		g.load(0).service[0].value.Store(1e6)
		if shares := g.shares(200, nil, now); shares[0] < 200/n/3 {
			t.Errorf("of %d replicas the one that came back gets %d of 200", n, shares[0])
		}
	}
}

func TestTheOnlyReplicaIsAskedEvenWhenEjected(t *testing.T) {
	now := time.Now()
	g := standing(1)
	g.eject(0, now)
	if g.Pick(0, nil, now) != g.targets[0] {
		t.Error("nobody is asked")
	}
	if g.Pick(0, g.targets[0], now) != nil {
		t.Error("the excluded one is retried")
	}
}

// Silent counts only against a replica from which nothing at all came.
func TestSilence(t *testing.T) {
	asked := time.Now().Add(time.Hour)
	now := asked.Add(50 * time.Millisecond)
	dead, slow, usual := standing(1).targets[0], standing(1).targets[0], standing(1).targets[0]
	dead.replica.load.report(0, 0, asked.Add(-time.Millisecond))
	slow.replica.load.report(0, 0, asked.Add(time.Millisecond)) // answered somebody else
	dead.replica.load.output(49*time.Millisecond, 0, 0, asked)
	usual.replica.load.output(51*time.Millisecond, 0, 0, asked)
	for range ejectAfter {
		dead.Silent(asked, now)
		slow.Silent(asked, now)
		usual.Silent(asked, now)
	}
	if !dead.replica.health.ejected() {
		t.Error("a silent replica is not ejected")
	}
	if slow.replica.health.ejected() {
		t.Error("a slow replica is ejected although it answers")
	}
	if usual.replica.health.ejected() {
		t.Error("a replica that always takes that long is ejected")
	}
}

// What a replica has of lower priorities does not count for a query, and of its own and higher ones it does.
func TestPickByPriority(t *testing.T) {
	now := time.Now()
	g := standing(2)
	g.load(0).ask(1, 10)
	g.load(0).report(1, time.Second, now)
	g.load(1).ask(0, 1)
	for i := range 2 {
		g.load(i).service[0].value.Store(1e6)
	}
	for priority, want := range []int{0, 1, 1, 1} {
		if got := g.Pick(priority, nil, now); got != g.targets[want] {
			t.Errorf("a query of priority %d went to the replica with %d in flight", priority, got.replica.load.all())
		}
		if wait := g.Wait(priority, now); wait != 0 {
			t.Errorf("one of priority %d would wait %v at the least", priority, wait)
		}
	}
	g.load(1).ask(0, -1)
	for range 20 {
		if g.Pick(0, nil, now) != g.targets[1] {
			t.Fatal("a query goes to a replica that runs one of a lower priority though another one is idle")
		}
	}
	if n := g.load(0).before(0); n != 0.5 { // one runs
		t.Errorf("%v are before one of the highest priority", n)
	}
	if one := (&Group{g.targets[:1]}); one.Wait(0, now) != 0 || one.Wait(1, now) != time.Second || one.Wait(3, now) != time.Second {
		t.Error("a query waits for those of a lower priority, or not for those of a higher one")
	}
}
