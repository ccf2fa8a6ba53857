package redisstore

import (
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Where the catalog that a Store serves comes from.
const (
	FromRedis    = "redis"    // this process has read it there, or seen that it is the same
	FromSnapshot = "snapshot" // from the file; Redis has not been reached, or holds less
	FromNothing  = "none"     // it is empty, and Redis has not been reached
)

// State is how a Store is doing.
type State struct {
	Source      string // FromRedis, FromSnapshot or FromNothing
	Epoch       string
	Revision    uint64
	LastContact time.Time // when Redis has last answered; zero: never
	Away        string    // why it does not now; empty: it does
	Alarm       string    // what an operator has to decide, and how; empty: nothing
}

// State is how the Store is doing now.
func (s *Store) State() State {
	now := s.current.Load()
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return State{
		Source:      s.health.source,
		Epoch:       now.at.Epoch,
		Revision:    now.catalog.Revision,
		LastContact: s.health.contact,
		Away:        text(s.health.away),
		Alarm:       text(s.health.alarm),
	}
}

// health is what a Store knows of Redis.
type health struct {
	mu      sync.Mutex // guards the following
	source  string
	contact time.Time
	away    error               // of the last contact
	alarm   error               // of the last reading
	unable  *serving.Unwritable // why it takes no writes; nil: it does
}

// note takes in how a reading went, and says what is new about it.
func (s *Store) note(err error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	h, log := &s.health, s.log.With("revision", s.Catalog().Revision)
	if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, errUnreadable) {
		if h.away == nil {
			log.Warn("redis is unavailable; the last good catalog stays in use", "from", h.source, "err", err)
		}
		h.away = err
		return
	}
	if h.away != nil {
		log.Info("redis is available again")
	}
	h.away, h.contact = nil, time.Now()
	if err == nil {
		h.source = FromRedis
	}
	switch {
	case err == nil && h.alarm != nil:
		log.Info("the alarm is over: Redis holds the catalog again")
	case err != nil && h.alarm == nil: // once: the words change as others write
		log.Error("the catalog in Redis is not used, and the last good one stays", "err", err)
	}
	h.alarm = err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
