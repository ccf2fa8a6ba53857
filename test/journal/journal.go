// Package journal keeps in tests what goroutines and processes write: a log, or their output.
package journal

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Journal keeps what is written, for a test to read at any time. Its zero value is empty.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write takes a piece of the text.
func (j *Journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// String is what was written so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Count says how often words were written so far.
func (j *Journal) Count(words string) int { return strings.Count(j.String(), words) }

// Logger is a log of text whose lines are written here, from Info up.
func (j *Journal) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }
