package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// troubles are what a job cannot do at present. Each is said when it begins and when it
// is over, however often it is tried meanwhile.
type troubles struct {
	log *slog.Logger

	mu     sync.Mutex
	now    map[string]error // by what is tried
	last   string           // the last one that began
	lastAt time.Time
}

func newTroubles(log *slog.Logger) *troubles {
	return &troubles{log: log, now: map[string]error{}}
}

func (t *troubles) begin(what string, err error) {
	t.mu.Lock()
	_, already := t.now[what]
	t.now[what] = err
	t.last, t.lastAt = fmt.Sprintf("cannot %s: %v", what, err), time.Now()
	t.mu.Unlock()
	if !already {
		t.log.Warn("cannot "+what+"; trying on", "err", err)
	}
}

func (t *troubles) end(what string) {
	t.mu.Lock()
	_, was := t.now[what]
	delete(t.now, what)
	t.mu.Unlock()
	if was {
		t.log.Info("can " + what + " again")
	}
}

// note remembers what went wrong once.
func (t *troubles) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.lastAt = text, time.Now()
}

// err says what cannot be done now, or nil.
func (t *troubles) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []error
	for _, what := range slices.Sorted(maps.Keys(t.now)) {
		all = append(all, fmt.Errorf("cannot %s: %w", what, t.now[what]))
	}
	return errors.Join(all...)
}

func (t *troubles) lastOne() (text string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.lastAt
}
