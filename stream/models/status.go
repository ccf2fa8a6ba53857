package models

import (
	"maps"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Status is how a job is doing.
type Status struct {
	Name       string              `json:"name"`
	Streams    []string            `json:"streams"`
	Output     string              `json:"output"`
	DeadLetter string              `json:"dead_letter"`
	API        string              `json:"api"`
	Since      time.Time           `json:"since"`
	Suspended  *serving.Suspension `json:"suspended,omitempty"`   // nil: it is not
	Condition  string              `json:"trouble,omitempty"`     // what it cannot do at present
	Lag        *int64              `json:"lag_records,omitempty"` // updates that the group has not committed; nil: it is not known
	InHand     int                 `json:"in_hand"`               // updates that are polled and not committed
	Tally                          // of what is committed
	Lost       uint64              `json:"lost_batches"` // that belonged to another member when they were to be committed
	LastPlace  string              `json:"last_place,omitempty"`
	LastCommit *time.Time          `json:"last_commit,omitempty"`
	LastError  string              `json:"last_error,omitempty"`
	LastFailed *time.Time          `json:"last_failed,omitempty"` // when that was
}

// Tally counts updates by what became of them.
type Tally struct {
	Updates     uint64            `json:"updates"`
	Outcomes    map[string]uint64 `json:"outcomes"`
	DeadLetters uint64            `json:"dead_letters"`
	Redelivered uint64            `json:"repeated"` // of the updates; the broker forgot that they were committed
}

// counts is what Status is made of.
type counts struct {
	since time.Time // of New

	mu    sync.Mutex
	tally Tally
	place string    // of the last update that was committed
	last  time.Time // when that was
}

func (c *counts) commit(t Tally, place string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Updates += t.Updates
	c.tally.DeadLetters += t.DeadLetters
	c.tally.Redelivered += t.Redelivered
	if c.tally.Outcomes == nil {
		c.tally.Outcomes = map[string]uint64{}
	}
	for outcome, n := range t.Outcomes {
		c.tally.Outcomes[outcome] += n
	}
	c.place, c.last = place, now
}

func (c *counts) read(into *Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	into.Tally, into.LastPlace = c.tally, c.place
	into.Outcomes = map[string]uint64{}
	maps.Copy(into.Outcomes, c.tally.Outcomes)
	if last := c.last; !last.IsZero() {
		into.LastCommit = &last
	}
}

// Status says how the job is doing. Anybody may ask at any time.
func (j *Job) Status() Status {
	s := Status{
		Name: j.cfg.Name, Streams: j.cfg.Streams, Output: j.cfg.Output, DeadLetter: j.cfg.DeadLetter, API: j.cfg.API.Server, Since: j.counts.since,
	}
	if err := j.loop.Err(); err != nil {
		s.Condition = err.Error()
	}
	s.LastError, s.LastFailed = j.conditions.Last()
	s.Suspended, s.Lost = j.loop.Gate.Suspension(), j.loop.LostBatches()
	s.Lag = j.loop.Lag()
	s.InHand, _ = j.loop.InHand()
	j.counts.read(&s)
	return s
}
