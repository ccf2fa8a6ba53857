package sidecar

import (
	"time"

	"topsail/serving"
)

// profile is what a container of the pool takes, as demand reports say it: the mean
// over those that are known.
func (p *pool) profile() serving.LatencyLine {
	var base, slope, known float64
	for _, b := range *p.batchers.Load() {
		if line := b.Profile().Line(); line.Took(1) > 0 {
			base += line.Base
			slope += line.Slope
			known++
		}
	}
	if known == 0 {
		return serving.LatencyLine{}
	}
	return serving.LatencyLine{Base: seconds(base / known), PerInput: seconds(slope / known)}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
