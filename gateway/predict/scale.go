package predict

import "time"

// scale is which bounds of times the metrics of an app have: few enough for a page, and close to each
// other where its answers are, so that a percentile is right to 5 %, however times are spread within a
// bucket. That is from a hundredth of the objective, where a fast model is, to a quarter above it,
// where the last default is. Times are counted by all bounds, and so an app whose objective changes
// goes on counting.
type scale struct {
	bounds []float64 // in seconds
	upTo   []int     // by bound: its place among all bounds
	counts []uint64  // by bound, and of what is beyond; reused
}

// newScale is that of an objective.
func newScale(objective time.Duration) *scale {
	const apart = 1.6 // how far bounds may be from each other where no answers are expected, as a ratio
	s := &scale{bounds: []float64{bounds[0].Seconds()}, upTo: []int{0}}
	last := bounds[0]
	for i := 1; i < timeBounds; i++ {
		end := i == timeBounds-1
		near := !end && bounds[i+1] >= objective/100 && bounds[i-1] <= objective+objective/4
		if end || near || float64(bounds[i+1]) > float64(last)*apart {
			last = bounds[i]
			s.bounds, s.upTo = append(s.bounds, last.Seconds()), append(s.upTo, i)
		}
	}
	s.counts = make([]uint64, len(s.bounds)+1)
	return s
}

// of counts times by the scale; valid until it is called again.
func (s *scale) of(t *times) []uint64 {
	clear(s.counts)
	all := t.buckets.Load()
	if all == nil {
		return s.counts
	}
	at := 0
	for i := range all {
		n := all[i].Load()
		if n == 0 {
			continue
		}
		for at < len(s.upTo) && i > s.upTo[at] {
			at++
		}
		s.counts[at] += n
	}
	return s.counts
}

// scales are those of objectives, made as they are asked for.
type scales map[time.Duration]*scale

func (all scales) of(objective time.Duration) *scale {
	if all[objective] == nil {
		all[objective] = newScale(objective)
	}
	return all[objective]
}
