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
	// profileFresh is how long the line is trusted without a new observation.
	// Without an end, one slow batch could make admission refuse everything and
	// so never see that the model is fast again.
	profileFresh = 250 * time.Millisecond
	// An observation that is off by this factor is an outlier; so many in a row
	// mean that the model has changed for good.
	profileOutlier = 4
	profileChange  = 3
	// profilePrior is how much of a spread of sizes, squared and relative to
	// their mean, weighs as much as the prior estimate about the slope.
	profilePrior = 0.001
)

// Profile is the latency of one container by batch size. Only the batcher calls Observe;
// everything else is safe for concurrent use.
type Profile struct {
	line atomic.Pointer[Line]

	warm                bool    // the first batch after a load was seen, and ignored
	s, sn, snn, st, snt float64 // decayed sums of weight, n, n², t, n·t
	dev                 float64 // decayed mean of |t - line|
	odd                 int     // outliers in a row: too slow, or, below 0, too fast

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
	at               time.Time
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

// Observe takes in a batch of n that took t and ended at now. It says whether the
// batch counts: the first one after a load pays for lazy work, and does not.
func (p *Profile) Observe(n int, took time.Duration, now time.Time) bool {
	p.count(n, took)
	if !p.warm {
		p.warm = true
		return false
	}
	x, t := float64(n), p.judge(n, took.Seconds())
	d := profileDecay
	p.s, p.sn, p.snn = p.s*d+1, p.sn*d+x, p.snn*d+x*x
	p.st, p.snt = p.st*d+t, p.snt*d+x*t
	line := p.fit()
	p.dev = p.dev*d + (1-d)*math.Abs(t-line.seconds(n))
	line.Dev = p.dev
	if p.odd >= 0 {
		line.at = now // a line that was just seen to be too high is not trusted
	}
	p.line.Store(line)
	return true
}

// judge bounds an outlier on the slow side, so that one batch that was held up
// does not spoil the line, and forgets the past when the model has changed.
func (p *Profile) judge(n int, t float64) float64 {
	expected := p.Line().seconds(n)
	switch {
	case expected == 0:
		return t
	case t < expected/profileOutlier:
		p.odd = min(p.odd, 0) - 1
	case t > expected*profileOutlier:
		p.odd = max(p.odd, 0) + 1
	default:
		p.odd = 0
	}
	if p.odd == profileChange || p.odd == -profileChange {
		p.s, p.sn, p.snn, p.st, p.snt, p.dev, p.odd = 0, 0, 0, 0, 0, 0, 0
		return t
	}
	return min(t, expected*profileOutlier)
}

// fit is least squares, with the prior estimate that a quarter of the time goes with the size and
// the rest is fixed. That decides while all sizes are alike, and is hopeful enough to have larger
// ones tried, which corrects it.
func (p *Profile) fit() *Line {
	meanN, meanT := p.sn/p.s, p.st/p.s
	variance, covariance := p.snn/p.s-meanN*meanN, p.snt/p.s-meanN*meanT
	weight, prior := profilePrior*meanN*meanN, meanT/meanN/4
	slope := (covariance + weight*prior) / (variance + weight)
	slope = min(max(slope, 0), meanT/meanN) // neither part is negative
	return &Line{Slope: slope, Base: meanT - slope*meanN}
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

// Fresh says whether the line may still be trusted at now.
func (l *Line) Fresh(now time.Time) bool { return !l.at.IsZero() && now.Sub(l.at) < profileFresh }

// Took estimates the time of a batch of n; 0 when nothing is known.
func (l *Line) Took(n int) time.Duration {
	return time.Duration(l.seconds(n) * float64(time.Second))
}

// Within is a time that a batch of n rarely exceeds: the estimate and twice the
// mean deviation from it.
func (l *Line) Within(n int) time.Duration {
	return time.Duration((l.seconds(n) + 2*l.Dev) * float64(time.Second))
}

func (l *Line) seconds(n int) float64 { return l.Slope*float64(n) + l.Base }

// Enough is the least size with which batches have so much of the rate, in inputs a second, of those of size n.
func (l *Line) Enough(n int, part float64) int {
	whole := l.seconds(n)
	if whole <= 0 {
		return n
	}
	// size/(Slope·size + Base) ≥ part·n/whole
	return max(1, int(math.Ceil(part*float64(n)*l.Base/(whole-part*float64(n)*l.Slope))))
}

// SizeWithin is the largest size that the line expects to take at most t, but at
// least 1; without an estimate, Unlimited.
func (l *Line) SizeWithin(t time.Duration) int {
	spare := t.Seconds() - l.Base
	switch {
	case spare < l.Slope:
		return 1
	case spare < l.Slope*Unlimited:
		return int(spare / l.Slope)
	}
	return Unlimited
}
