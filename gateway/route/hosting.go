package route

import (
	"math"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// refusedFor is how long a replica's word counts that it cannot hold a version.
const refusedFor = 5 * time.Second

// refusal is a replica's word that it cannot hold a version, and why.
type refusal struct {
	why string
	at  time.Time
}

// Load asks a replica of the host to hold a version: the one that the version belongs to,
// of those that have not just said that they cannot. Where it
// is held already, none is asked; with more, one is that does not hold it. It says
// whether one holds it or was asked. The replica announces the version when it is ready.
func (t *Table) Load(host serving.Definition, v rpc.Load, more bool, now time.Time) bool {
	group := t.Group(host)
	if group.Len() == 0 {
		return false
	}
	of := fingerprint(v.Model.String())
	for below := uint64(math.MaxUint64); ; {
		target, score := group.next(of, below, nil)
		if target == nil {
			return false
		}
		if ok, _ := target.replica.health.usable(now); ok {
			switch target.replica.hold(v, now) {
			case asked:
				return true
			case held:
				if !more {
					return true
				}
			}
		}
		below = score
	}
}

// Refusals are what the ready replicas of the host have said lately about a version that they
// cannot hold: the newest reason, when it was said, and whether all have one.
func (t *Table) Refusals(host, held serving.Definition, now time.Time) (why string, at time.Time, all bool) {
	group := t.Group(host)
	if group.Len() == 0 {
		return "", at, false
	}
	all = true
	for _, target := range group.targets {
		switch no, said := target.replica.refusal(held, now); {
		case !said:
			all = false
		case no.at.After(at):
			why, at = no.why, no.at
		}
	}
	return why, at, all
}

// refusal is the replica's word that it cannot hold a version, if that counts.
func (r *replica) refusal(d serving.Definition, now time.Time) (no refusal, said bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	no, said = r.refused[d]
	return no, said && now.Sub(no.at) < refusedFor
}

// holding is what came of asking a replica to load a version.
type holding int

const (
	asked  holding = iota
	held           // it does
	unable         // it has just said that it cannot, or is not there
)

// hold asks the replica to hold a version, unless it does or cannot.
func (r *replica) hold(v rpc.Load, now time.Time) holding {
	_, refused := r.refusal(v.Definition(), now)
	r.mu.Lock()
	conn := r.conn
	ready := false
	for _, a := range r.models {
		ready = ready || a.Definition() == v.Definition() && a.State == rpc.StateReady
	}
	r.mu.Unlock()
	switch {
	case ready:
		return held
	case conn == nil || refused || conn.Peer().Features&rpc.FeatureHost == 0:
		return unable
	case conn.Send(rpc.KindLoad, 0, rpc.AppendLoad(nil, v)) != nil:
		return unable
	}
	return asked
}
