package window

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// The windows, which end with the newest known second.
const (
	Stable = 60 * time.Second
	Panic  = 6 * time.Second
	Burst  = 2 * time.Second
)

// Demand is what is asked of one model version.
type Demand struct {
	Unknown string // why the demand is not known now; empty: it is

	Stable, Panic, Burst Mean

	// Peak is the busiest window of the length of Panic within the stable one,
	// its two figures each by itself.
	Peak Mean

	// Backlog is what waits in streams.
	Backlog Backlog

	// Quiet is for how long there has been no query, up to the newest known
	// second, as far as that is known.
	Quiet time.Duration

	// Profile is the mean of the sidecars' latest within the stable window; zero
	// where none has said.
	Profile serving.LatencyLine
}

// Mean is the demand of the known seconds of a window.
type Mean struct {
	Seconds  int     // known ones
	Rate     float64 // queries a second
	Diverted float64 // of those, the ones that a model answered that is ranked after it, as this one could not in time
	InFlight float64 // queries at a time; those diverted count as the others
}

// sum is a Mean in the making.
type sum struct {
	seconds                     int
	arrived, diverted, inFlight float64
}

func (s sum) mean() Mean {
	if s.seconds == 0 {
		return Mean{}
	}
	n := float64(s.seconds)
	return Mean{Seconds: s.seconds, Rate: s.arrived / n, Diverted: s.diverted / n, InFlight: s.inFlight / n}
}

func (s sum) add(c cell, sign float64) sum {
	return sum{s.seconds + int(sign), s.arrived + sign*c.arrived, s.diverted + sign*c.diverted, s.inFlight + sign*c.wanted()}
}
