package serving

import "time"

// Demand is what one process saw of one model version in one second: counts and
// sums of that second alone, so that those of several processes and seconds add up.
type Demand struct {
	ModelID

	// From gateways, about questions that no cache answered.
	Arrivals    uint64        // questions, and those that it was not asked because it has no replica and another model has
	Unserved    uint64        // of those, the ones that found no ready replica
	Defaults    uint64        // of those, the ones that ended without an output in time
	Diverted    uint64        // of those, the ones that went on to a model that a policy ranks after it
	Concurrency time.Duration // integral of the questions in flight over the second, held ones included

	// From sidecars.
	Admitted uint64        // inputs taken into the queue
	Refused  uint64        // inputs refused or dropped
	Batches  uint64        // calls of the container
	Inputs   uint64        // in those calls
	Waited   time.Duration // sum over the inputs: from arrival to the start of their call
	Service  time.Duration // sum over the calls
	Profile  LatencyLine   // as it is at the end of the second; zero while unknown
}

// LatencyLine is what a container takes for a batch of n: Base + n·PerInput.
type LatencyLine struct {
	Base     time.Duration
	PerInput time.Duration
}

// Took is how long a batch of n takes.
func (l LatencyLine) Took(n int) time.Duration { return l.Base + time.Duration(n)*l.PerInput }

// DemandReport is everything that one process saw in one second. A process reports
// every second while it lives, also when it saw nothing, so that a second that is
// missing is known to be unknown.
type DemandReport struct {
	Source  DemandSource
	Second  time.Time // its start, on a whole second, UTC
	Demands []Demand  // of versions that had something to say
	// Backlogs are those of streams that a gateway's process serves.
	Backlogs []Backlog
	Last     bool // the process leaves: seconds after this one are not missing
}

// Backlog is what waits in a stream for a model version. Every process that serves the stream knows the
// whole of it: of several the largest counts, and not the sum.
type Backlog struct {
	ModelID
	Stream   string
	Records  uint64        // that wait
	Answered uint64        // records of the stream that got answers in the second, in this process alone
	CatchUp  time.Duration // in which what waits is to be worked off
}

// AppBacklog is what waits in a stream for an app, and how many of its records the process answered
// since it said so last.
type AppBacklog struct {
	App               string
	Records, Answered uint64
}

// DemandSource is a process that reports demand.
type DemandSource struct {
	Role string // "gateway" or "sidecar"
	Name string // unique among the living and those of the last hour
}
