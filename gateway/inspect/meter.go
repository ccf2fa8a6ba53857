package inspect

import (
	"math"
	"time"
)

// tick is how often meters are moved on.
const tick = 5 * time.Second

// meter is how fast something grows: moving averages that are moved on every tick.
type meter struct {
	since              time.Time
	seen               uint64
	ticks              int
	one, five, fifteen float64 // a second
}

// moved is the meter a tick later, when the count is at so much.
func (m meter) moved(count uint64) meter {
	rate := float64(count-m.seen) / tick.Seconds()
	average := func(old, minutes float64) float64 {
		if m.ticks == 0 {
			return rate
		}
		return rate + (old-rate)*math.Exp(-tick.Minutes()/minutes)
	}
	m.one, m.five, m.fifteen = average(m.one, 1), average(m.five, 5), average(m.fifteen, 15)
	m.seen = count
	m.ticks++
	return m
}

// rates are those of a meter as the page has them.
type rates struct {
	Unit    string `json:"unit"`
	Rate    string `json:"rate"`
	One     string `json:"rate_1min"`
	Five    string `json:"rate_5min"`
	Fifteen string `json:"rate_15min"`
}

// rates gives the averages, and the rate over the whole age; before the first tick all
// are the same.
func (m meter) rates(count uint64, age time.Duration) rates {
	overall := 0.0
	if age > 0 {
		overall = float64(count) / age.Seconds()
	}
	if m.ticks == 0 {
		m.one, m.five, m.fifteen = overall, overall, overall
	}
	return rates{"events per second", decimal(overall), decimal(m.one), decimal(m.five), decimal(m.fifteen)}
}
