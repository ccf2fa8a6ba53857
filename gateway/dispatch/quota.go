package dispatch

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Quota shares out a version that is short of capacity: apps that can do without it ask it less,
// so that apps that cannot still get answers in time. Each app may do so many asks a second for
// each unit of its weight, a rate that goes down by a part while the version is short and up
// slowly while it is not: additive increase, multiplicative decrease, and max-min fair because an
// app that asks less than its share leaves the rest to others. The lowest priority that asks goes down first.
type Quota struct {
	short   atomic.Bool  // asks are counted; all that is looked at while nothing is amiss
	refusal atomic.Int64 // when a replica last refused, unix nanoseconds

	mu       sync.Mutex                  // guards the following
	rates    [serving.Priorities]float64 // asks a second for each unit of weight, by priority
	asked    [serving.Priorities]bool    // since the last adjustment
	held     [serving.Priorities]bool    // back, since then
	pressed  bool                        // since then
	adjusted time.Time
	relieved time.Time // since when nothing was amiss, and no app held back
	apps     map[allowed]*allowance
}

// allowed is an app's queries of one priority.
type allowed struct {
	app      string
	priority int
}

// allowance is what these may still ask.
type allowance struct {
	tokens float64
	at     time.Time
}

const (
	quotaEvery = 100 * time.Millisecond // between adjustments
	quotaDown  = 0.7
	quotaUp    = 1.1
	quotaFirst = 200.0 // asks a second, where it begins
	quotaLeast = 1.0
	quotaMost  = 1e6
	// quotaCalm is how long nothing must be amiss, and no app held back, for the quota
	// to end: then its end releases no burst.
	quotaCalm = 2 * time.Second
	// quotaBurst is for how long an app can save up.
	quotaBurst = 100 * time.Millisecond
	mostQuotas = 1024 // apps in one quota
)

// Refused notes that a replica of the version refused a question.
func (r *Quota) Refused(now time.Time) { r.refusal.Store(now.UnixNano()) }

// Allow says whether a query may ask the version though it could do without. wait is
// what the question would wait, and budget what time it has.
func (r *Quota) Allow(class serving.Class, wait, budget time.Duration, now time.Time) bool {
	pressed := wait > budget/2 || now.UnixNano()-r.refusal.Load() < int64(quotaEvery)
	if !pressed && !r.short.Load() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adjust(pressed, now)
	if !r.short.Load() {
		return true
	}
	return r.take(class, now)
}

// adjust begins, moves or ends the quota. r.mu is held.
func (r *Quota) adjust(pressed bool, now time.Time) {
	r.pressed = r.pressed || pressed
	if pressed {
		r.relieved = now
	}
	switch {
	case !r.short.Load():
		if pressed {
			r.short.Store(true)
			for i := range r.rates {
				r.rates[i] = quotaFirst
			}
			r.adjusted, r.pressed = now, false
			r.apps = map[allowed]*allowance{}
		}
	case now.Sub(r.adjusted) < quotaEvery:
	case now.Sub(r.relieved) > quotaCalm:
		r.short.Store(false)
		r.apps = nil
	default:
		r.move()
		r.adjusted, r.pressed = now, false
		clear(r.asked[:])
		clear(r.held[:])
	}
}

// move moves the rate of one priority: that of the lowest that asks down, or that of the highest up. r.mu is held.
func (r *Quota) move() {
	if r.pressed {
		for p, asked := range slices.Backward(r.asked[:]) {
			if asked && (r.rates[p] > quotaLeast || p == 0) {
				r.rates[p] = max(quotaLeast, r.rates[p]*quotaDown)
				return
			}
		}
		return
	}
	for p := range r.rates {
		r.rates[p] = min(quotaMost, r.rates[p]*quotaUp+1)
		if r.held[p] {
			return
		}
	}
}

// take takes one ask out of the allowance of its app and priority. r.mu is held.
func (r *Quota) take(class serving.Class, now time.Time) bool {
	r.asked[class.Priority] = true
	key := allowed{class.App, class.Priority}
	own := r.apps[key]
	if own == nil {
		if len(r.apps) >= mostQuotas {
			return false
		}
		own = &allowance{tokens: 1, at: now}
		r.apps[key] = own
	}
	each := r.rates[class.Priority] * class.Weight
	own.tokens = min(own.tokens+each*now.Sub(own.at).Seconds(), max(1, each*quotaBurst.Seconds()))
	own.at = now
	if own.tokens < 1 {
		r.relieved, r.held[class.Priority] = now, true
		return false
	}
	own.tokens--
	return true
}
