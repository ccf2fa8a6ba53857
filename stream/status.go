package stream

import (
	"maps"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Status is how a job is doing. Handlers say in their words what records came to.
type Status struct {
	Name       string              `json:"name"`
	Streams    []string            `json:"streams"`
	Output     string              `json:"output"`
	DeadLetter string              `json:"dead_letter"`
	Since      time.Time           `json:"since"`
	Suspended  *serving.Suspension `json:"suspended,omitempty"`   // nil: it is not
	Condition  string              `json:"trouble,omitempty"`     // what it cannot do at present
	Lag        *int64              `json:"lag_records,omitempty"` // records that the group has not committed; nil: it is not known
	InFlight   int                 `json:"in_hand"`               // records that are polled and not committed
	Lost       uint64              `json:"lost_batches"`          // commits of records that belonged to another member by then
	LastPlace  string              `json:"last_place,omitempty"`
	LastCommit *time.Time          `json:"last_commit,omitempty"`
	LastError  string              `json:"last_error,omitempty"`
	LastFailed *time.Time          `json:"last_failed,omitempty"` // when that was
}

// Tally counts records by what became of them.
type Tally struct {
	Records     uint64
	Outcomes    map[string]uint64 // of those that got results
	DeadLetters uint64
	Redelivered uint64 // of the records; the broker forgot that they were committed
}

// counts is what Status is made of.
type counts struct {
	since time.Time // of New

	mu    sync.Mutex
	tally Tally
	place string    // of the last record that was committed
	last  time.Time // when that was
}

func (c *counts) commit(t Tally, place string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Records += t.Records
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

func (c *counts) read(into *Status) Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	into.Since, into.LastPlace = c.since, c.place
	if last := c.last; !last.IsZero() {
		into.LastCommit = &last
	}
	tally := c.tally
	tally.Outcomes = map[string]uint64{}
	maps.Copy(tally.Outcomes, c.tally.Outcomes)
	return tally
}

// Status says how the job is doing, and what its records came to. It is safe to call from any
// goroutine.
func (j *Job) Status() (Status, Tally) {
	s := Status{
		Name: j.cfg.Name, Streams: j.cfg.Streams, Output: j.cfg.Output, DeadLetter: j.cfg.DeadLetter,
		Suspended: j.Gate.Suspension(), Lag: j.lag.get(), Lost: j.losses.count(),
	}
	if err := j.failing(); err != nil {
		s.Condition = err.Error()
	}
	s.LastError, s.LastFailed = j.Conditions.Last()
	s.InFlight, _ = j.window.now()
	tally := j.counts.read(&s)
	return s, tally
}
