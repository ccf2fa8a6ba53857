package batch

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	profileDecay = 0.95 // weight that an observation keeps per later one
	// profileFresh is how long the line is believed without a new observation.
	// Without an end, one slow batch could make admission refuse everything and
	// so never see that the model is fast again.
	profileFresh = 250 * time.Millisecond
)

// Profile is the latency of one container by batch size. Observe is called by
// the batcher alone; everything else by anyone.
type Profile struct {
	line atomic.Pointer[Line]

	warm                bool    // the first batch after a load was seen, and ignored
	s, sn, snn, st, snt float64 // decayed sums of weight, n, n², t, n·t
	dev                 float64 // decayed mean of |t - line|
	fast                int     // batches in a row that took less than half the line

	mu    sync.Mutex
	sizes [17]SizeStat // by bits.Len(n-1): sizes up to 1, 2, 4, 8, …
}

// SizeStat sums up the batches of one range of sizes.
type SizeStat struct {
	UpTo    int // the largest size of the range
	Batches int64
	Inputs  int64
	Total   time.Duration
	Max     time.Duration
}

// Line is an estimate t(n) = Slope·n + Base, with the mean deviation from it. It
// is immutable; the zero Line knows nothing.
type Line struct {
	Slope, Base, Dev float64 // seconds
	// seen is the mean size behind the estimate when all sizes were alike: then
	// smaller batches are taken to cost the same and larger ones in proportion.
	seen float64
	at   time.Time
}

// NewProfile knows nothing yet.
func NewProfile() *Profile {
	p := &Profile{}
	p.line.Store(&Line{})
	for i := range p.sizes {
		p.sizes[i].UpTo = 1 << i
	}
	return p
}

// Line is the present estimate.
func (p *Profile) Line() *Line { return p.line.Load() }

// Observe takes in a batch of n that took t and ended at now.
func (p *Profile) Observe(n int, took time.Duration, now time.Time) {
	p.count(n, took)
	if !p.warm {
		p.warm = true // the first call after a load pays for lazy work
		return
	}
	x, t := float64(n), took.Seconds()
	if expected := p.Line().seconds(n); expected > 0 && t < expected/2 {
		p.fast++
	} else {
		p.fast = 0
	}
	if p.fast >= 3 { // the model has become faster for good: forget the slow past
		p.s, p.sn, p.snn, p.st, p.snt, p.dev, p.fast = 0, 0, 0, 0, 0, 0, 0
	}
	d := profileDecay
	p.s, p.sn, p.snn = p.s*d+1, p.sn*d+x, p.snn*d+x*x
	p.st, p.snt = p.st*d+t, p.snt*d+x*t
	line := p.fit()
	p.dev = p.dev*d + (1-d)*math.Abs(t-line.seconds(n))
	line.Dev, line.at = p.dev, now
	p.line.Store(line)
}

func (p *Profile) fit() *Line {
	meanN, meanT := p.sn/p.s, p.st/p.s
	variance := p.snn/p.s - meanN*meanN
	if variance < 0.05*meanN*meanN {
		return &Line{Base: meanT, seen: meanN}
	}
	slope := max((p.snt/p.s-meanN*meanT)/variance, 0)
	base := meanT - slope*meanN
	if base < 0 {
		slope, base = meanT/meanN, 0
	}
	return &Line{Slope: slope, Base: base}
}

func (p *Profile) count(n int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.sizes[min(bits.Len(uint(n-1)), len(p.sizes)-1)]
	s.Batches++
	s.Inputs += int64(n)
	s.Total += took
	s.Max = max(s.Max, took)
}

// Sizes lists what was seen, by range of sizes; ranges without a batch are left out.
func (p *Profile) Sizes() []SizeStat {
	p.mu.Lock()
	defer p.mu.Unlock()
	var seen []SizeStat
	for _, s := range p.sizes {
		if s.Batches > 0 {
			seen = append(seen, s)
		}
	}
	return seen
}

// Fresh says whether the line may still be believed at now.
func (l *Line) Fresh(now time.Time) bool { return !l.at.IsZero() && now.Sub(l.at) < profileFresh }

// Took estimates the time of a batch of n; 0 when nothing is known.
func (l *Line) Took(n int) time.Duration {
	return time.Duration(l.seconds(n) * float64(time.Second))
}

func (l *Line) seconds(n int) float64 {
	if l.seen > 0 {
		return l.Base * max(1, float64(n)/l.seen)
	}
	return l.Slope*float64(n) + l.Base
}

// SizeWithin is the largest size that the line expects to take at most t; without
// an estimate, Unlimited.
func (l *Line) SizeWithin(t time.Duration) int {
	switch s := t.Seconds(); {
	case l.seen > 0:
		return int(min(max(s/l.Base*l.seen, 1), Unlimited))
	case l.Slope > 0:
		return int(min(max((s-l.Base)/l.Slope, 1), Unlimited))
	}
	return Unlimited
}
