package traffic

import (
	"math"
	"time"
)

const (
	fine   = 15 * time.Minute   // is kept by the second
	middle = 6 * time.Hour      // by 10 s
	coarse = 7 * 24 * time.Hour // by the minute

	maxPoints = 1000 // that are shown at once
)

// series are the numbers of an app or a version, in three resolutions.
type series [3]ring

func newSeries(columns int) series {
	return series{
		newRing(1, int64(fine/time.Second), columns),
		newRing(10, int64(middle/time.Second), columns),
		newRing(60, int64(coarse/time.Second), columns),
	}
}

// view is a window onto series: points that are each a few steps.
type view struct {
	ring  *ring
	first int64 // step of the first point
	group int64 // steps of a point
	n     int   // points
}

// view is the window up to a second, which is the last one that counts.
func (s *series) view(window time.Duration, until int64) view {
	window = min(max(window, time.Minute), coarse)
	r := &s[2]
	switch {
	case window <= fine:
		r = &s[0]
	case window <= middle:
		r = &s[1]
	}
	steps := int64(window/time.Second) / r.step
	group := (steps + maxPoints - 1) / maxPoints
	n := steps / group
	last := until / r.step / group // points begin at multiples of their length, so that they stay when time goes on
	return view{ring: r, first: (last - n + 1) * group, group: group, n: int(n)}
}

// step is the length of a point in seconds.
func (v view) step() int { return int(v.group * v.ring.step) }

// times are when the points begin, in Unix seconds.
func (v view) times() []int64 {
	all := make([]int64, v.n)
	for i := range all {
		all[i] = (v.first + int64(i)*v.group) * v.ring.step
	}
	return all
}

// point puts the known numbers of a point together.
func (v view) point(column, i int, join func(sum, next float64) float64) float64 {
	all := math.NaN()
	for k := range v.group {
		x := v.ring.at(column, v.first+int64(i)*v.group+k)
		switch {
		case math.IsNaN(x):
		case math.IsNaN(all):
			all = x
		default:
			all = join(all, x)
		}
	}
	return all
}

func sum(a, b float64) float64  { return a + b }
func last(_, b float64) float64 { return b }
func most(a, b float64) float64 { return max(a, b) }

// points are those of a column; nil is unknown.
func (v view) points(column int, join func(sum, next float64) float64) []*float64 {
	all := make([]*float64, v.n)
	for i := range all {
		all[i] = known(v.point(column, i, join))
	}
	return all
}

// known is nil for what is not a number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
