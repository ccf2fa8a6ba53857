package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// show prints the median of samples, their range, and the bar if there is one.
func show[T cmp.Ordered](what string, samples []T, bar string) {
	sorted := slices.Sorted(slices.Values(samples))
	fmt.Printf("  %-62s %10v   (%v to %v, %d runs)   %s\n", what, round(sorted[len(sorted)/2]), round(sorted[0]), round(sorted[len(sorted)-1]), len(sorted), bar)
}

// round leaves out digits that say nothing.
func round(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.Round(max(time.Microsecond, min(time.Millisecond, v/1000)))
	case float64:
		return fmt.Sprintf("%.3g", v)
	}
	return v
}

// quantile of samples that are not empty.
func quantile(samples []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
