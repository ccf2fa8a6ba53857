package dispatch

import (
	"math"
	"sync/atomic"
	"time"
)

// latency is how long a version takes to answer, as this gateway sees it. It follows the
// median and the 95th percentile by small steps, up when an answer took longer and down
// when it did not, so that in the long run the right share lies above; the steps are a
// part of what is followed, so that any scale is reached soon (Ma, Muthukrishnan and
// Sandler, "Frugal streaming for estimating quantiles", 2014).
type latency struct {
	median, p95 atomic.Uint64 // bits of seconds; 0: nothing came yet
	probed      atomic.Int64  // when it was last asked though it seemed too slow, unix nanoseconds
}

const (
	// latencyStep is the part of itself by which an estimate moves.
	latencyStep = 0.05
	// latencyRace is how often an answer tries to be counted against others.
	latencyRace = 2
	// probeEvery is how often a version is asked that seems too slow: without answers, it would
	// seem too slow forever.
	probeEvery = 100 * time.Millisecond
)

func (p *latency) note(took time.Duration) {
	x := max(took.Seconds(), 1e-9)
	follow(&p.median, x, 0.5)
	follow(&p.p95, x, 0.95)
}

// follow moves the estimate of a quantile. It loses a sample rather than spin.
func follow(estimate *atomic.Uint64, x, quantile float64) {
	for range latencyRace {
		old := estimate.Load()
		now := math.Float64frombits(old)
		switch {
		case old == 0:
			now = x
		case x > now:
			now *= 1 + latencyStep*quantile // also beyond x: a shorter step would leave too much above
		default:
			now = max(x, now*(1-latencyStep*(1-quantile)))
		}
		if estimate.CompareAndSwap(old, math.Float64bits(now)) {
			return
		}
	}
}

// probe says once in a while that a version is to be asked though it seems too slow.
func (p *latency) probe(now time.Time) bool {
	last := p.probed.Load()
	return now.UnixNano()-last >= int64(probeEvery) && p.probed.CompareAndSwap(last, now.UnixNano())
}

// times are the median and the 95th percentile; 0 while nothing is known.
func (p *latency) times() (median, p95 time.Duration) {
	return duration(&p.median), duration(&p.p95)
}

func duration(estimate *atomic.Uint64) time.Duration {
	return time.Duration(math.Float64frombits(estimate.Load()) * float64(time.Second))
}
