package batch

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/sidecar/queue"
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
	// The line over bytes is taken where it is closer by this part of what the one over inputs is off, and of what
	// batches take.
	closerBy, closerOf = 0.1, 0.01
	// meanOver is how many of the latest inputs make the mean of their bytes.
	meanOver = 1000
)

// Profile is the latency of one container by batch size. It keeps a line over the number of inputs and one over their
// bytes, and goes by the one that is less far off. Only the batcher calls Observe;
// everything else is safe for concurrent use.
type Profile struct {
	line atomic.Pointer[Line]

	warm           bool    // the first batch after a load was seen, and ignored
	inputs, bytes  fit     // over the number of inputs, and over their bytes
	mean, averaged float64 // bytes of an input, over so many of them
	odd            int     // outliers in a row: too slow, or, below 0, too fast

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

// Line is the estimate of a profile.
type Line struct {
	queue.Line
	at    time.Time
	bytes float64 // of an input
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

// Observe takes in a batch that took t and ended at now. It says whether the
// batch counts: the first one after a load pays for lazy work, and does not.
func (p *Profile) Observe(of queue.Load, took time.Duration, now time.Time) bool {
	p.count(of.N, took)
	if !p.warm {
		p.warm = true
		return false
	}
	n, bytes := float64(of.N), float64(of.Bytes)
	t := p.judge(n, bytes, took.Seconds())
	p.inputs.observe(n, t)
	p.bytes.observe(bytes, t)
	p.averaged = min(p.averaged+n, meanOver)
	p.mean = max(0, p.mean+(bytes-n*p.mean)/max(p.averaged, n)) // rounded, it may be just below
	line := &Line{Line: queue.Line{Slope: p.inputs.slope, Base: p.inputs.base, Dev: p.inputs.dev}, bytes: p.mean}
	if closer := p.inputs.dev - p.bytes.dev; p.bytes.sx > 0 && closer > closerBy*p.inputs.dev && closer > closerOf*p.bytes.st/p.bytes.s {
		line.Line = queue.Line{Slope: p.bytes.slope * p.mean, Base: p.bytes.base, Dev: p.bytes.dev, Mean: p.mean}
	}
	if p.odd >= 0 {
		line.at = now // a line that was just seen to be too high is not trusted
	}
	p.line.Store(line)
	return true
}

// judge bounds an outlier on the slow side, so that one batch that was held up
// does not spoil the lines, and forgets the past when the model has changed.
func (p *Profile) judge(n, bytes, t float64) float64 {
	least, most := p.inputs.at(n), p.inputs.at(n)
	if p.bytes.sx > 0 {
		least, most = min(least, p.bytes.at(bytes)), max(most, p.bytes.at(bytes))
	}
	switch {
	case most == 0:
		return t
	case t < least/profileOutlier:
		p.odd = min(p.odd, 0) - 1
	case t > most*profileOutlier:
		p.odd = max(p.odd, 0) + 1
	default:
		p.odd = 0
	}
	if p.odd == profileChange || p.odd == -profileChange {
		p.inputs, p.bytes, p.odd = fit{}, fit{}, 0
		return t
	}
	return min(t, most*profileOutlier)
}

// fit is a line t = slope·x + base through batches, of which the later ones count more.
type fit struct {
	s, sx, sxx, st, sxt float64 // decayed sums of weight, x, x², t, x·t
	slope, base         float64
	dev                 float64 // decayed mean of |t - line|
}

// observe is least squares, with the prior estimate that a quarter of the time goes with x and
// the rest is fixed. That decides while all x are alike, and is hopeful enough to have larger
// ones tried, which corrects it.
func (f *fit) observe(x, t float64) {
	d := profileDecay
	f.s, f.sx, f.sxx = f.s*d+1, f.sx*d+x, f.sxx*d+x*x
	f.st, f.sxt = f.st*d+t, f.sxt*d+x*t
	meanX, meanT := f.sx/f.s, f.st/f.s
	if meanX > 0 {
		variance, covariance := f.sxx/f.s-meanX*meanX, f.sxt/f.s-meanX*meanT
		weight, prior := profilePrior*meanX*meanX, meanT/meanX/4
		slope := (covariance + weight*prior) / (variance + weight)
		f.slope = min(max(slope, 0), meanT/meanX) // neither part is negative
	}
	f.base = meanT - f.slope*meanX
	f.dev = f.dev*d + (1-d)*math.Abs(t-f.at(x))
}

func (f *fit) at(x float64) float64 { return f.slope*x + f.base }

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

// Enough is the least size with which batches have so much of the rate, in inputs a second, of those of size n.
func (l *Line) Enough(n int, part float64) int {
	whole := l.Slope*float64(n) + l.Base
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
