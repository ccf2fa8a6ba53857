package screen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Ago is how long ago something was: "12 s ago"; empty for the zero time.
func Ago(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	d := now.Sub(then)
	if d < 0 {
		return "in " + Span(-d)
	}
	return Span(d) + " ago"
}

// Span is a time in its largest whole unit.
func Span(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= 2*unit.size {
			return strconv.FormatInt(int64(d/unit.size), 10) + " " + unit.name
		}
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + " s"
}

// Micros is a time in microseconds as people read it: "850 µs", "1.2 ms", "3 s"; empty
// for none.
func Micros(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return strconv.FormatInt(n, 10) + " µs"
	case n < 1_000_000:
		return digits(float64(n)/1e3) + " ms"
	}
	return digits(float64(n)/1e6) + " s"
}

// Bytes is a size as people read it.
func Bytes(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	size, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if size < 999.5 {
			break
		}
		size, unit = size/1000, next
	}
	return digits(size) + " " + unit
}

// Share is a part of one in percent, as the web UI writes it: with more digits near none and all.
// Only all is 100 %, and only none is 0 %.
func Share(x float64) string {
	percent := 100 * x
	if percent == 0 || percent >= 100 {
		return grouped(math.Round(percent)) + " %"
	}
	factor := 10.0
	if percent > 98.9 || percent < 1 {
		factor = 100
	}
	cut := max(1, math.Round(percent*factor))
	if percent > 50 {
		cut = math.Floor(percent * factor)
	}
	return strconv.FormatFloat(cut/factor, 'f', -1, 64) + " %"
}

// grouped is a whole number with commas between thousands.
func grouped(x float64) string {
	text := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Number is a figure with three digits that count.
func Number(x float64) string { return digits(x) }

func digits(x float64) string {
	places := 0
	switch {
	case x == 0:
		return "0"
	case x < 1 && x > -1:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case x < 10 && x > -10:
		places = 2
	case x < 100 && x > -100:
		places = 1
	}
	text := fmt.Sprintf("%.*f", places, x)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
