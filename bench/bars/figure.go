package main

import (
	"fmt"
	"slices"
	"strconv"
)

// figure is one row of a table: one sample per run of the same quantity.
type figure struct {
	What    string
	Unit    unit
	Samples []float64 // in the order of the runs
	Bar     bar       // the zero bar: none
	Absent  string    // why there are no samples
}

type unit string

const (
	perSecond unit = "/s"
	times     unit = "×"
	ms        unit = "ms"
	micros    unit = "µs"
	nanos     unit = "ns"
	percent   unit = "%"
	mebibytes unit = "MiB"
	count     unit = ""
)

// bar is what a figure must reach. It is for the median, or for every run.
type bar struct {
	Sign  string // "≥", "≤" or "<"
	Limit float64
	Every bool
}

func atLeast(x float64) bar { return bar{Sign: "≥", Limit: x} }
func atMost(x float64) bar  { return bar{Sign: "≤", Limit: x} }
func below(x float64) bar   { return bar{Sign: "<", Limit: x} }
func none() bar             { return bar{Sign: "≤", Limit: 0, Every: true} }

func (b bar) reached(x float64) bool {
	switch b.Sign {
	case "≥":
		return x >= b.Limit
	case "≤":
		return x <= b.Limit
	case "<":
		return x < b.Limit
	}
	return true
}

// sampled makes a figure of what read finds in each run.
func sampled[T any](what string, unit unit, bar bar, runs []T, read func(T) float64) figure {
	f := figure{What: what, Unit: unit, Bar: bar}
	for _, run := range runs {
		f.Samples = append(f.Samples, read(run))
	}
	return f
}

// compared makes a figure of two variants that took turns: how compares those of
// the same round, which the same noise has met.
func compared[T any](what string, unit unit, bar bar, runs, others []T, how func(run, other T) float64) figure {
	f := figure{What: what, Unit: unit, Bar: bar}
	for i := range runs {
		f.Samples = append(f.Samples, how(runs[i], others[i]))
	}
	return f
}

// absent is a figure that was not measured, and why.
func absent(what string, unit unit, bar bar, why string) figure {
	return figure{What: what, Unit: unit, Bar: bar, Absent: why}
}

// rateOver compares throughputs.
func rateOver(run, other drive) float64 { return run.Rate / other.Rate }

// Median is the middle sample, or the mean of the middle two.
func (f figure) Median() float64 { return median(f.Samples) }

func median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	if n == 0 {
		return 0
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// Verdict is "pass" or "MISS", or empty without a bar.
func (f figure) Verdict() string {
	if f.Absent != "" {
		return ""
	}
	reached := f.Bar.reached(f.Median())
	if f.Bar.Every {
		reached = !slices.ContainsFunc(f.Samples, func(x float64) bool { return !f.Bar.reached(x) })
	}
	switch {
	case f.Bar.Sign == "":
		return ""
	case reached:
		return "pass"
	}
	return "MISS"
}

// Value is the median for people.
func (f figure) Value() string {
	if f.Absent != "" {
		return "not measured"
	}
	return f.Unit.format(f.Median()) + f.Unit.suffix()
}

// Spread is the smallest and the largest sample, for people.
func (f figure) Spread() string {
	if f.Absent != "" {
		return f.Absent
	}
	return f.Unit.format(slices.Min(f.Samples)) + "–" + f.Unit.format(slices.Max(f.Samples))
}

// Wanted is the bar, for people.
func (f figure) Wanted() string {
	switch {
	case f.Bar.Sign == "":
		return ""
	case f.Bar == none():
		return "none"
	}
	return f.Bar.Sign + " " + strconv.FormatFloat(f.Bar.Limit, 'f', -1, 64) + f.Unit.suffix()
}

func (u unit) suffix() string {
	switch u {
	case perSecond, times, count:
		return string(u)
	}
	return " " + string(u)
}

func (u unit) format(x float64) string {
	switch u {
	case times:
		return fmt.Sprintf("%.2f", x)
	case ms:
		return fmt.Sprintf("%.2f", x)
	case micros, mebibytes:
		return fmt.Sprintf("%.1f", x)
	}
	return grouped(int64(x + 0.5))
}

// grouped writes a whole number with a comma before each three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
