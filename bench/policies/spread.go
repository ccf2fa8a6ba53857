package main

import (
	"fmt"
	"slices"
)

// median is that of a list, which must not be empty.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is a list in words: its median and range, each in a format.
func spread(format string, list []float64) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", median(list), slices.Min(list), slices.Max(list))
}

// percents are shares as people read them.
func percents(list []float64) []float64 {
	list = slices.Clone(list)
	for i := range list {
		list[i] *= 100
	}
	return list
}
