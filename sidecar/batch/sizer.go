package batch

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Sizer decides how many inputs go into the next batch of one container. It is
// used by one goroutine.
type Sizer interface {
	// Size is the most that the next batch should hold, at least 1.
	Size() int
	// Observe reports how long a batch of n took. target is the time that a batch should take at
	// most; full says that more inputs could not have gone in.
	Observe(n int, took, target time.Duration, full bool)
}

// Unlimited caps sizes where the spec does not: one frame holds no more.
const Unlimited = 65536

// NewSizer makes the sizer that spec names; profile is what AIMD may look at.
func NewSizer(spec serving.BatchSpec, profile *Profile) Sizer {
	limit := spec.MaxSize
	if limit == 0 {
		limit = Unlimited
	}
	switch spec.Strategy {
	case "fixed":
		return Fixed(spec.MaxSize)
	case "quantile":
		return NewQuantile(limit)
	}
	aimd := NewAIMD(limit, profile)
	aimd.gain = &gain{}
	return aimd
}

// Fixed is a size that never changes, for models compiled for one.
type Fixed int

func (f Fixed) Size() int { return int(f) }

func (f Fixed) Observe(int, time.Duration, time.Duration, bool) {}
