package route

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// answer is what a simulated replica does to every query.
type answer struct {
	status rpc.Status
	after  time.Duration
	wait   time.Duration // reported
}

// event is an answer on its way.
type event struct {
	at, sent time.Time
	before   float64 // in flight when it was sent
	to       *Target
	answer   answer
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simulate sends a query every interval for the given time, and counts whom they
// went to. Replica i behaves as answers[i] says.
func simulate(g *Group, interval, total time.Duration, answers []answer) []int {
	start := time.Now()
	counts := make([]int, len(answers))
	var flying events
	for now := start; now.Before(start.Add(total)); now = now.Add(interval) {
		for len(flying) > 0 && !flying[0].at.After(now) {
			e := heap.Pop(&flying).(event)
			r := e.to.replica
			r.load.ask(0, -1)
			r.load.report(0, e.answer.wait, e.at)
			r.judge(e.answer.status, e.at.Sub(e.sent), 0, e.before, e.at)
		}
		target := g.Pick(0, nil, now)
		for i := range g.targets {
			if g.targets[i] == target {
				counts[i]++
				before := target.replica.load.before(0)
				target.replica.load.sending(now)
				target.replica.load.ask(0, 1)
				heap.Push(&flying, event{now.Add(answers[i].after), now, before, target, answers[i]})
			}
		}
	}
	return counts
}

// A replica that fails or refuses at once answers faster than any that works, and
// has nothing in flight. It must not draw the queries of the others to itself.
func TestAReplicaThatFailsFastAttractsNoTraffic(t *testing.T) {
	good := answer{rpc.StatusOK, 10 * time.Millisecond, time.Millisecond}
	failures := []rpc.Status{
		rpc.StatusModelError, rpc.StatusBadInput, rpc.StatusFull, rpc.StatusLate, rpc.StatusExpired,
		rpc.StatusDraining, rpc.StatusUnknownModel, rpc.StatusNoContainer, rpc.StatusContainer,
	}
	for _, status := range failures {
		for _, worked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, worked before: %v", status, worked), func(t *testing.T) {
				for _, n := range []int{2, 4} {
					g := standing(n)
					answers := []answer{{status, 100 * time.Microsecond, 0}}
					for range n - 1 {
						answers = append(answers, good)
					}
					if worked {
						g.load(0).service[0].value.Store(int64(time.Millisecond))
					}
					counts := simulate(g, time.Millisecond, 3*time.Second, answers)
					if share := float64(counts[0]) / 3000; share > 0.01 {
						t.Errorf("of %d replicas the one that fails got %.1f %% of the queries", n, 100*share)
					}
				}
			})
		}
	}
}

func TestTheSlowerReplicaGetsLess(t *testing.T) {
	g := standing(2)
	counts := simulate(g, time.Millisecond, 10*time.Second, []answer{{rpc.StatusOK, 10 * time.Millisecond, 0}, {rpc.StatusOK, 40 * time.Millisecond, 0}})
	if counts[0] < 2*counts[1] || counts[1] == 0 {
		t.Errorf("the fast one got %d, the slow one %d", counts[0], counts[1])
	}
}

// TestOneInAHundredTakesLong sends queries of which one in a hundred takes a thousand times as long, to replicas that are
// idle most of the time. Hardly any other waits behind such a one: those that had one before are not shunned for it.
func TestOneInAHundredTakesLong(t *testing.T) {
	const n, usual, long = 10_000, 2 * time.Millisecond, 2 * time.Second
	g, now, waited := standing(4), time.Now(), 0
	free := map[*Target]time.Time{} // when it has done all that it was sent
	var flying events
	for i := range n {
		now = now.Add(time.Second / 60)
		for len(flying) > 0 && !flying[0].at.After(now) {
			e := heap.Pop(&flying).(event)
			r := e.to.replica
			r.load.ask(0, -1)
			r.load.report(0, 0, e.at)
			r.judge(rpc.StatusOK, e.at.Sub(e.sent), 0, e.before, e.at)
		}
		takes := usual
		if i%100 == 50 {
			takes = long
		}
		target := g.Pick(0, nil, now)
		before := target.replica.load.before(0)
		target.replica.load.sending(now)
		target.replica.load.ask(0, 1)
		begins := now
		if free[target].After(now) {
			begins = free[target]
			if takes == usual && begins.Sub(now) > usual {
				waited++
			}
		}
		free[target] = begins.Add(takes)
		heap.Push(&flying, event{at: free[target], sent: now, before: before, to: target})
	}
	if waited > n/200 {
		t.Errorf("%d of %d waited behind one that takes long", waited, n)
	}
}

// A new replica is asked as much as the others until its first output, not by
// everybody at once.
func TestANewReplicaIsNotOverrun(t *testing.T) {
	g := standing(3)
	warm := answer{rpc.StatusOK, 10 * time.Millisecond, 0}
	for i := range 2 {
		g.load(i).service[0].value.Store(int64(warm.after))
	}
	cold := answer{rpc.StatusOK, 10 * time.Second, 0} // nothing comes within the simulation
	counts := simulate(g, time.Millisecond, time.Second, []answer{warm, warm, cold})
	if counts[2] == 0 || counts[2] > 20 {
		t.Errorf("the new one got %d of 1000 while its first answers were out", counts[2])
	}
}

// A question that this gateway cancelled says nothing about the replica.
func TestACancelledQuestionIsNoFailure(t *testing.T) {
	now := time.Now()
	g := standing(2)
	for range ejectAfter {
		g.targets[0].replica.judge(rpc.StatusCancelled, 0, 0, 0, now)
	}
	if shares := g.shares(1000, nil, now); shares[0] < 400 {
		t.Errorf("it got %d of 1000", shares[0])
	}
}

// Answers with an error of the model, at random, are no reason to shun a replica.
func TestModelErrorsOfAllReplicasChangeNothing(t *testing.T) {
	g := standing(3)
	now := time.Now()
	for i := range 3 {
		g.targets[i].replica.judge(rpc.StatusModelError, 0, 0, 0, now)
	}
	for i, n := range g.shares(3000, nil, now) {
		if n < 800 || n > 1200 {
			t.Errorf("replica %d got %d of 3000", i, n)
		}
		if g.targets[i].replica.health.ejected() {
			t.Errorf("replica %d is ejected", i)
		}
	}
}

// TestReplicasThatBatchShareABurst sends many queries at once, again and again, to replicas that
// take all that waits as one batch. All must end at about one time. By the latencies themselves
// whoever got less of one burst would get more of the next, forever.
func TestReplicasThatBatchShareABurst(t *testing.T) {
	const burst = 256
	for _, perInput := range [][]time.Duration{
		{time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond},
		{time.Millisecond, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond},
	} {
		g, now := standing(len(perInput)), time.Now()
		var busy, total time.Duration
		for round := range 100 {
			sent := map[*Target]int{}
			for range burst {
				target := g.Pick(0, nil, now)
				target.replica.load.sending(now)
				target.replica.load.ask(0, 1)
				sent[target]++
			}
			var longest time.Duration
			for i, target := range g.targets {
				took := time.Duration(sent[target]) * perInput[i]
				for before := range sent[target] {
					target.replica.load.ask(0, -1)
					target.replica.judge(rpc.StatusOK, took, 0, float64(before), now.Add(took))
				}
				longest = max(longest, took)
				if round >= 10 {
					busy += took
				}
			}
			if round >= 10 {
				total += longest
			}
			now = now.Add(longest)
		}
		if share := busy.Seconds() / total.Seconds() / float64(len(perInput)); share < 0.9 {
			t.Errorf("replicas that take %v for an input are busy for %.2f of the time", perInput, share)
		}
	}
}

// runner is a simulated replica that takes the same for each input, and higher priorities first.
type runner struct {
	target  *Target
	waiting [serving.Priorities][]sentTo
	running *sentTo
	ends    time.Time
}

// sentTo is a question that a runner has.
type sentTo struct {
	at       time.Time
	priority int
	before   float64
}

const runTakes = 100 * time.Millisecond

// start runs the next one, if there is any.
func (r *runner) start(now time.Time) {
	r.running = nil
	for p, waiting := range r.waiting {
		if len(waiting) > 0 {
			r.running, r.waiting[p], r.ends = &waiting[0], waiting[1:], now.Add(runTakes)
			return
		}
	}
}

// wait is what a new one of a priority would wait.
func (r *runner) wait(priority int, now time.Time) (wait time.Duration) {
	if r.running != nil {
		wait = r.ends.Sub(now)
	}
	for _, waiting := range r.waiting[:priority+1] {
		wait += time.Duration(len(waiting)) * runTakes
	}
	return wait
}

// besideStream sends what comes at random of the highest priority to replicas, and keeps so many of the next one in
// flight. It returns the time within which 99 % of the first are answered.
func besideStream(replicas, inFlight int, seed uint64) time.Duration {
	const queries = 20_000
	g, now, random := standing(replicas), time.Now(), rand.New(rand.NewPCG(seed, 0))
	runners := make([]*runner, replicas)
	for i, target := range g.targets {
		runners[i] = &runner{target: target}
	}
	send := func(priority int) {
		target := g.Pick(priority, nil, now)
		r := runners[slices.Index(g.targets, target)]
		r.waiting[priority] = append(r.waiting[priority], sentTo{now, priority, target.replica.load.before(priority)})
		if target.replica.load.ask(priority, 1); r.running == nil {
			r.start(now)
		}
	}
	for range inFlight {
		send(1)
	}
	var took []time.Duration
	arrives := now
	for len(took) < queries {
		next := runners[0]
		for _, r := range runners {
			if r.running != nil && (next.running == nil || r.ends.Before(next.ends)) {
				next = r
			}
		}
		if next.running == nil || arrives.Before(next.ends) {
			now, arrives = arrives, arrives.Add(time.Duration(random.ExpFloat64()*float64(runTakes)/0.7/float64(replicas)))
			send(0)
			continue
		}
		now = next.ends
		done, load := next.running, &next.target.replica.load
		load.ask(done.priority, -1)
		next.target.replica.judge(rpc.StatusOK, now.Sub(done.at), done.priority, done.before, now)
		next.running = nil
		wait := next.wait(done.priority, now)
		if next.start(now); random.IntN(2) == 0 { // the answer may leave before the next one runs, or after that
			wait = next.wait(done.priority, now)
		}
		load.report(done.priority, wait, now)
		if done.priority == 0 {
			took = append(took, now.Sub(done.at))
		} else {
			send(1)
		}
	}
	slices.Sort(took)
	return took[queries*99/100]
}

// A stream that takes all that an app leaves of four replicas makes the app wait a little longer, since what runs is not
// interrupted. That its outputs come late, overtaken by the app's, says nothing about the replica that has them.
func TestAnAppBesideAStreamOverSeveralReplicas(t *testing.T) {
	var alone, beside time.Duration
	for seed := range uint64(5) {
		alone += besideStream(4, 0, seed)
		beside += besideStream(4, 16, seed)
	}
	if ratio := beside.Seconds() / alone.Seconds(); ratio > 1.25 {
		t.Errorf("99 %% of the app's are answered within %v, and beside the stream within %v: %.2f times", alone/5, beside/5, ratio)
	} else {
		t.Logf("%v, and beside the stream %v: %.2f times", alone/5, beside/5, ratio)
	}
}
