package route

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Target is one model version on one replica.
type Target struct {
	replica *replica
	model   uint32 // its id on the connection
}

// Replica is the name of the target's replica.
func (t *Target) Replica() string { return t.replica.endpoint.Replica }

// Ask sends one input; to gets the answer, perhaps before Ask returns. After a failure, to gets
// nothing. The number, by which the question went out, is for Cancel.
func (t *Target) Ask(to Receiver, a *rpc.Ask, in serving.Input, now time.Time) (uint64, *serving.Failure) {
	r := t.replica
	conn := r.connection()
	if conn == nil {
		return 0, &serving.Failure{Cause: serving.NoReplica, Message: "the replica is not connected"}
	}
	batch, ok := r.questions.add(question{to: to, from: t, priority: int(a.Priority), sent: now, overdue: now.Add(max(a.Budget, 0) + overdueAfter)})
	if !ok {
		return 0, &serving.Failure{Cause: serving.RefusedFull, Message: "too many queries are in flight at the replica"}
	}
	if conn.Peer().Features&rpc.FeatureApps == 0 {
		a.App = nil
	}
	b := rpc.AppendPredictHead(conn.Begin(rpc.KindPredict), rpc.PredictHead{Batch: batch, Model: t.model, Count: 1})
	if err := conn.End(conn.AppendAskInput(b, a, in), 0); err != nil {
		if _, mine := r.questions.take(batch); mine {
			cause := serving.ContainerError
			if errors.Is(err, rpc.ErrBacklog) {
				cause = serving.RefusedFull
			}
			return 0, &serving.Failure{Cause: cause, Message: err.Error()}
		}
		// The connection ended in between, and its end has answered already.
	}
	return batch, nil
}

// Cancel says that the answer to a question is not needed any more; it may come
// all the same.
func (t *Target) Cancel(question uint64) { t.replica.cancel(question) }

// Silent counts against a replica that has been silent for too long since it was
// asked. One that answered others meanwhile, or that takes so long as a rule, is
// slow, not silent.
func (t *Target) Silent(asked, now time.Time) {
	usual := time.Duration(t.replica.load.latency.value.Load())
	if now.Sub(asked) > usual && !t.replica.load.heardSince(asked) {
		t.replica.fail(now)
	}
}

func (t *Target) sameReplica(other *Target) bool { return other != nil && t.replica == other.replica }

// Group is the ready replicas of one model version: an immutable snapshot.
type Group struct{ targets []*Target }

// Len is the number of ready replicas; a nil group has none.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return len(g.targets)
}

// Wait is what a new query of a priority would wait at the least, as the replicas reported lately.
func (g *Group) Wait(priority int, now time.Time) time.Duration {
	if g.Len() == 0 {
		return 0
	}
	least, _ := g.targets[0].replica.load.waiting(priority, now)
	for _, t := range g.targets[1:] {
		wait, _ := t.replica.load.waiting(priority, now)
		least = min(least, wait)
	}
	return least
}

// choices is how many replicas are compared. Two would do to keep the longest queue short
// (Mitzenmacher, "The power of two choices in randomized load balancing", 2001), but they miss
// the only idle one of four replicas half of the time.
const choices = 4

// Pick picks a replica other than not (which may be nil): of a few at random the
// one where a query of a priority would wait the least. Ejected replicas are left out, unless no
// other is left, or it is time to probe one.
func (g *Group) Pick(priority int, not *Target, now time.Time) *Target {
	if g.Len() == 0 {
		return nil
	}
	if g.Len() == 1 {
		return g.any(not)
	}
	var seen [choices]*Target
	var best *Target
	for i := range min(choices, len(g.targets)) {
		t, probe := g.sample(not, seen[:i], now)
		if probe {
			return t
		}
		if t == nil {
			break
		}
		if seen[i] = t; best == nil || t.replica.load.cheaper(&best.replica.load, priority, now) {
			best = t
		}
	}
	if best == nil {
		return g.any(not)
	}
	return best
}

// owner picks the i-th of the n replicas that an affinity belongs to, other than not (which may be
// nil): those that score highest for it (Thaler and Ravishankar, "Using name-based mappings to
// increase hit rates", 1998). All gateways agree on them, and when a replica comes or goes only what
// belongs to it moves. What belongs to an ejected replica goes meanwhile to the best that is none of
// the n, or else to another one of them.
func (g *Group) owner(of uint64, i, n int, not *Target, now time.Time) *Target {
	if g.Len() == 0 {
		return nil
	}
	var room [serving.MaxOwners]scored
	owners := g.best(of, max(1, min(n, len(room))), not, room[:0])
	if len(owners) == 0 {
		return nil // there is only not
	}
	if t := owners[i%len(owners)].target; t.usable(now) {
		return t
	}
	for below := owners[len(owners)-1].score; ; {
		t, score := g.next(of, below, not)
		if t == nil {
			break
		}
		if t.usable(now) {
			return t
		}
		below = score
	}
	for _, o := range owners {
		if o.target.usable(now) {
			return o.target
		}
	}
	return g.any(not)
}

// scored is a target and its score for an affinity.
type scored struct {
	target *Target
	score  uint64
}

// best appends the n replicas with the highest scores for an affinity, the best first.
func (g *Group) best(of uint64, n int, not *Target, to []scored) []scored {
	for _, t := range g.targets {
		s := scored{t, t.score(of)}
		if t.sameReplica(not) || len(to) == n && s.score <= to[n-1].score {
			continue
		}
		at, twice := slices.BinarySearchFunc(to, s, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		if twice {
			continue // another target on the replica
		}
		to = slices.Insert(to[:min(len(to), n-1)], at, s)
	}
	return to
}

// next is the replica with the highest score for an affinity below one.
func (g *Group) next(of, below uint64, not *Target) (owner *Target, best uint64) {
	for _, t := range g.targets {
		if score := t.score(of); score < below && score >= best && !t.sameReplica(not) {
			owner, best = t, score
		}
	}
	return owner, best
}

func (t *Target) score(of uint64) uint64 { return mix(of ^ t.replica.fingerprint) }

func (t *Target) usable(now time.Time) bool {
	ok, _ := t.replica.health.usable(now)
	return ok
}

// fingerprint is the 64 bit FNV-1a hash of s, which is the same in every process.
func fingerprint(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix spreads x over all bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sampleTries is how often sample draws before it goes through the targets in
// order, which would favour those that come after unusable ones.
const sampleTries = 8

// sample picks a usable target at random, other than not and those seen. One that is
// due for a probe has to be asked.
func (g *Group) sample(not *Target, seen []*Target, now time.Time) (t *Target, probe bool) {
	at := 0
	for i := range sampleTries + len(g.targets) {
		if i < sampleTries {
			at = rand.IntN(len(g.targets))
		} else {
			at = (at + 1) % len(g.targets)
		}
		t := g.targets[at]
		if t.sameReplica(not) || slices.ContainsFunc(seen, t.sameReplica) {
			continue
		}
		if ok, probe := t.replica.health.usable(now); ok {
			return t, probe
		}
	}
	return nil, false
}

// any picks a target at random, ejected or not.
func (g *Group) any(not *Target) *Target {
	start := rand.IntN(len(g.targets))
	for i := range g.targets {
		if t := g.targets[(start+i)%len(g.targets)]; !t.sameReplica(not) {
			return t
		}
	}
	return nil
}
