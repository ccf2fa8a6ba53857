package dispatch

import (
	"sync"
	"sync/atomic"
	"time"
)

// Quota shares out a version that is short of capacity: apps that can do without it ask it less,
// so that apps that cannot still get answers in time. Each app may do so many asks a second for
// each unit of its weight, a rate that goes down by a part while the version is short and up
// slowly while it is not: additive increase, multiplicative decrease, and max-min fair because an
// app that asks less than its share leaves the rest to others.
type Quota struct {
	short   atomic.Bool  // asks are counted; all that is looked at while nothing is amiss
	refusal atomic.Int64 // when a replica last refused, unix nanoseconds

	mu       sync.Mutex // guards the following
	rate     float64    // asks a second for each unit of weight
	pressed  bool       // since the last adjustment
	adjusted time.Time
	relieved time.Time // since when nothing was amiss, and no app held back
	apps     map[string]*allowance
}

// allowance is what one app may still ask.
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

// Allow says whether an app may ask the version though it could do without. wait is
// what the question would wait, and budget what time it has.
func (r *Quota) Allow(app string, weight float64, wait, budget time.Duration, now time.Time) bool {
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
	return r.take(app, weight, now)
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
			r.rate, r.adjusted, r.pressed = quotaFirst, now, false
			r.apps = map[string]*allowance{}
		}
	case now.Sub(r.adjusted) < quotaEvery:
	case now.Sub(r.relieved) > quotaCalm:
		r.short.Store(false)
		r.apps = nil
	case r.pressed:
		r.rate, r.adjusted, r.pressed = max(quotaLeast, r.rate*quotaDown), now, false
	default:
		r.rate, r.adjusted = min(quotaMost, r.rate*quotaUp+1), now
	}
}

// take takes one ask out of the app's allowance. r.mu is held.
func (r *Quota) take(app string, weight float64, now time.Time) bool {
	own := r.apps[app]
	if own == nil {
		if len(r.apps) >= mostQuotas {
			return false
		}
		own = &allowance{tokens: 1, at: now}
		r.apps[app] = own
	}
	each := r.rate * weight
	own.tokens = min(own.tokens+each*now.Sub(own.at).Seconds(), max(1, each*quotaBurst.Seconds()))
	own.at = now
	if own.tokens < 1 {
		r.relieved = now
		return false
	}
	own.tokens--
	return true
}
