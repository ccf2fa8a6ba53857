// Package condition follows what fails for a while: the log has a line when that begins
// and one when it is over, however often it is tried meanwhile.
package condition

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Tracker follows what a job cannot do at present, of several things, and what failed last.
type Tracker struct {
	log *slog.Logger

	mu     sync.Mutex
	now    map[string]error // by what is tried
	last   string           // the last one that began
	lastAt time.Time
}

// New makes a tracker of a job that can do everything.
func New(log *slog.Logger) *Tracker {
	return &Tracker{log: log, now: map[string]error{}}
}

// Begin is called whenever something cannot be done.
func (t *Tracker) Begin(what string, err error) {
	t.mu.Lock()
	_, already := t.now[what]
	t.now[what] = err
	t.last, t.lastAt = fmt.Sprintf("cannot %s: %v", what, err), time.Now()
	t.mu.Unlock()
	if !already {
		t.log.Warn("cannot "+what+"; retrying", "err", err)
	}
}

// End is called whenever something can be done.
func (t *Tracker) End(what string) {
	t.mu.Lock()
	_, was := t.now[what]
	delete(t.now, what)
	t.mu.Unlock()
	if was {
		t.log.Info("can " + what + " again")
	}
}

// Note remembers what went wrong once.
func (t *Tracker) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.lastAt = text, time.Now()
}

// Err says what cannot be done now, or nil.
func (t *Tracker) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []error
	for _, what := range slices.Sorted(maps.Keys(t.now)) {
		all = append(all, fmt.Errorf("cannot %s: %w", what, t.now[what]))
	}
	return errors.Join(all...)
}

// What is what cannot be done now, sorted.
func (t *Tracker) What() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.now))
}

// Last is what went wrong last, and when; nil: nothing did.
func (t *Tracker) Last() (text string, at *time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lastAt.IsZero() {
		return "", nil
	}
	when := t.lastAt
	return t.last, &when
}
