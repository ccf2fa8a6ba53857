package batch

import "time"

// AIMD is additive increase, multiplicative decrease, as in Clipper's first
// prototype: a full batch well within its target adds 2, one that misses it
// takes a tenth off, and in between nothing changes. A batch that was not full
// says nothing about growing.
//
// Until the first miss it doubles instead of adding, as far as the profile's
// line bears, so that it arrives within a few batches.
//
// Batches of many bytes grow only while that makes an input take less.
type AIMD struct {
	size    int
	limit   int
	missed  bool
	profile *Profile
	gain    *gain // nil: bytes do not matter
}

// NewAIMD starts at 1 and never exceeds limit.
func NewAIMD(limit int, profile *Profile) *AIMD {
	return &AIMD{size: 1, limit: limit, profile: profile}
}

func (a *AIMD) Size() int { return a.size }

func (a *AIMD) Observe(n int, took, target time.Duration, full bool) {
	switch {
	case took >= target:
		a.missed = a.missed || a.size > 1 // at 1 there was nothing to double back from
		a.size = max(1, a.size*9/10)
	case took < comfortable(target) && full:
		next := a.size + 2
		if !a.missed {
			next = max(next, min(2*a.size, a.profile.Line().SizeWithin(comfortable(target))))
		}
		if a.gain != nil {
			next = a.gain.bound(n, took, a.size, next, a.profile.Line().bytes)
		}
		a.size = min(next, a.limit)
	}
}

// comfortable is what a batch takes that is well within its target.
func comfortable(target time.Duration) time.Duration { return target * 9 / 10 }
