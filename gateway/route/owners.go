package route

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// ownersEvery is how often it is decided how many owners an affinity needs.
	ownersEvery = time.Second
	// ownersCalm is how long fewer must do before there are fewer.
	ownersCalm = 10 * time.Second
	// ownersAim is the share of what owners can do that their number aims at.
	ownersAim = 0.7
	// ownerBusyShare is the part of its time that a query may wait before its owner counts as busy.
	ownerBusyShare = 4
)

// lastCalls is how many calls are looked at to tell which affinities have a large part of them.
const lastCalls = 1024

// Owners are the replicas that the affinities of one model version belong to: one each, and more for
// an affinity that one is not enough for. It is safe for concurrent use.
type Owners struct {
	mu     sync.Mutex            // guards the following
	last   []uint64              // fingerprints of the affinities of the last calls, a ring
	next   int                   // its oldest, once it is full
	counts map[uint64]int        // in last
	shared map[uint64]*ownership // of those of them that have several owners, or may need them
}

// Pick picks the replica of a call that has so much time, other than not (which may be nil): the
// owners of its affinity in turn.
func (o *Owners) Pick(g *Group, a serving.Affinity, budget time.Duration, not *Target, now time.Time) *Target {
	of := fingerprint(a.Key)
	if a.Owners == 1 || g.Len() < 2 {
		return g.owner(of, 0, 1, not, now)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if not == nil {
		o.count(of)
		o.share(of, a.Owners, g.Len(), now)
	}
	s := o.shared[of]
	if s == nil {
		return g.owner(of, 0, 1, not, now)
	}
	n := min(cmp.Or(a.Owners, s.owners), g.Len())
	t := g.owner(of, int(s.turn%uint64(n)), n, not, now)
	if not == nil && t != nil {
		s.called(t.replica.load.ahead(now) > budget/ownerBusyShare)
	}
	return t
}

// count takes in a call.
func (o *Owners) count(of uint64) {
	if o.counts == nil {
		o.counts, o.shared = map[uint64]int{}, map[uint64]*ownership{}
	}
	o.counts[of]++
	if len(o.last) < lastCalls {
		o.last = append(o.last, of)
		return
	}
	oldest := o.last[o.next]
	if o.counts[oldest]--; o.counts[oldest] == 0 {
		delete(o.counts, oldest)
		delete(o.shared, oldest)
	}
	o.last[o.next] = of
	o.next = (o.next + 1) % lastCalls
}

// share sees to how many owners an affinity has before a call.
func (o *Owners) share(of uint64, fixed, replicas int, now time.Time) {
	s := o.shared[of]
	switch may := fixed > 1 || heavy(o.counts[of], len(o.last), replicas); {
	case s == nil && may:
		o.shared[of] = &ownership{owners: 1, began: now}
	case s == nil:
	case s.owners == 1 && !may:
		delete(o.shared, of)
	case now.Sub(s.began) >= ownersEvery:
		s.decide(now.Sub(s.began), replicas)
		s.began, s.calls, s.busy = now, 0, 0
	}
}

// heavy says whether an affinity with so many of the last calls may be too much for one of the
// replicas: they could not answer the calls of all if it had less than half of one's part.
func heavy(count, calls, replicas int) bool { return 2*count*replicas >= calls }

// ownership is how many owners an affinity has, and why.
type ownership struct {
	owners int
	turn   uint64    // counts its calls
	began  time.Time // of what is counted in the next two
	calls  int
	busy   int           // of the calls, those whose owner was busy
	each   float64       // calls a second that each owner took when they were busy last; 0: they never were
	calm   time.Duration // for how long they have not been
	peak   int           // owners that were needed at most meanwhile
}

func (s *ownership) called(busy bool) {
	s.turn++
	s.calls++
	if busy {
		s.busy++
	}
}

// decide changes the number of owners by the calls of a time: twice as many while they are busy, and
// as many as the calls need by what each could do then once they have not been for long enough. While
// owners are busy it cannot be told how many calls there would be: who asks may wait for them.
func (s *ownership) decide(took time.Duration, replicas int) {
	n, rate := min(s.owners, replicas), float64(s.calls)/took.Seconds()
	if 2*s.busy > s.calls {
		s.each, s.calm, s.peak = rate/float64(n), 0, 0
		s.owners = min(2*n, replicas, serving.MaxOwners)
		return
	}
	if s.owners == 1 {
		return
	}
	s.calm += took
	s.peak = max(s.peak, int(math.Ceil(rate/(s.each*ownersAim))))
	if s.calm >= ownersCalm {
		s.owners = max(1, min(s.owners, s.peak))
		s.calm, s.peak = 0, 0
	}
}
