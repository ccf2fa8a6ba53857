package queue

import (
	"math"
	"time"
)

// Load is what inputs ask of a container. What it takes goes with their number, or with their bytes.
type Load struct {
	N     int
	Bytes int // of what is in them
}

// Load is what the item alone asks.
func (it *Item) Load() Load { return Load{1, len(it.Ask.Payload)} }

// LoadOf is what items ask together.
func LoadOf(items []*Item) (l Load) {
	for _, it := range items {
		l.N++
		l.Bytes += len(it.Ask.Payload)
	}
	return l
}

// Line is what a container is thought to take for a batch: Base, and Slope for each usual input in it. It is
// immutable; the zero Line knows nothing.
type Line struct {
	Slope, Base float64 // seconds
	Dev         float64 // seconds that batches are off it in the mean
	Mean        float64 // bytes of a usual input; 0: every input is one
}

// Amount is how many usual inputs a load is as much as.
func (l *Line) Amount(of Load) float64 {
	if l.Mean == 0 {
		return float64(of.N)
	}
	return float64(of.Bytes) / l.Mean
}

// Took estimates the time of a batch of so many usual inputs; 0 when nothing is known.
func (l *Line) Took(amount float64) time.Duration {
	return duration(l.Base + l.Slope*amount)
}

// Within is a time that it rarely exceeds: the estimate and twice the mean deviation from it.
func (l *Line) Within(amount float64) time.Duration {
	return duration(l.Base + l.Slope*amount + 2*l.Dev)
}

// duration bounds seconds to what a time.Duration can say, which a line through a few odd batches may exceed.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, 1<<33) * float64(time.Second)) // 270 years
}

// room is the largest amount that rarely exceeds t.
func (l *Line) room(t time.Duration) float64 {
	spare := (t + 1).Seconds() - l.Base - 2*l.Dev // a nanosecond more, for what rounding takes
	switch {
	case spare < 0:
		return 0
	case l.Slope == 0:
		return math.Inf(1)
	}
	return spare / l.Slope
}
