package scale

import (
	"time"

	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

// Role is what a version is to its model.
type Role string

const (
	Current Role = "current" // asked for, and serving
	Rollout Role = "rollout" // asked for, and not serving yet
	Serving Role = "serving" // serves until the one that is asked for can
	Old     Role = "old"     // neither
)

// Input is everything that a decision about one version looks at.
type Input struct {
	Now     time.Time
	Version *serving.Version
	Role    Role
	SLO     time.Duration // the tightest of the apps that use the version; 0: none does
	Demand  window.Demand
	Job     serving.Job // zero but for its name where there is none
	Ready   int         // replicas that are ready
	Woken   time.Time   // when a gateway last had queries and no replica

	Behind  int  // of Rollout: replicas of the version that serves meanwhile
	Settled bool // of Old: the current version serves, with all the replicas that it needs
}

// State is what is remembered of a version from one decision to the next.
type State struct {
	Role    Role      // what it was; empty: nothing is remembered
	Changed time.Time // when its count was last changed, or since when it is watched
	Active  time.Time // until when it was not idle
	Surge   time.Time // until when short windows are followed closely
	Keep    time.Time // until when nothing is taken away
	Kept    string    // the rule that says so
	Old     time.Time // since when it is old; zero: it is not
	Profile serving.LatencyLine
}

// observe takes in what is to be remembered.
func (s *State) observe(in *Input) {
	switch {
	case in.Role != Old:
		s.Old = time.Time{}
	case s.Old.IsZero():
		s.Old = in.Now
	}
	// Demand moves from one version to another. Until it is seen where it moves to,
	// the count that is there for it stays.
	if in.Role != s.Role && s.Role != "" {
		s.Active, s.Keep, s.Kept = in.Now, in.Now.Add(window.Stable), ruleRollout
	}
	s.Role = in.Role
	if in.Demand.Unknown == "" {
		s.Active = later(s.Active, in.Now.Add(-in.Demand.Quiet))
	}
	s.Active = later(s.Active, in.Woken)
	// A replica that was woken may start for longer than the idle time. Were it
	// stopped for that, it would never serve.
	if in.Ready == 0 && in.Job.Count > 0 && in.Now.Sub(s.Changed) < starts {
		s.Active = in.Now
	}
	if in.Demand.Profile != (serving.LatencyLine{}) {
		s.Profile = in.Demand.Profile
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
