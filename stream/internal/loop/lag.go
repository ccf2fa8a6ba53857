package loop

import (
	"context"
	"sync"
	"time"
)

const (
	lagEvery  = 5 * time.Second
	lagWithin = 5 * time.Second
	consuming = "consume from the broker"
)

// Consuming is the condition of a job whose broker is away or refuses.
const Consuming = "cannot " + consuming

// lagging is a Consumer that says how it stands with what it consumes, to any goroutine; package
// stream says what it promises.
type lagging interface {
	Lag(ctx context.Context) (records int64, err error)
}

// lag is how many records wait, as far as it is known.
type lag struct {
	mu      sync.Mutex
	records *int64 // nil: it is not known
}

func (l *lag) set(records *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = records
}

// Lag is how many records the group has not committed; nil while that is not known.
func (l *Loop) Lag() *int64 {
	l.lag.mu.Lock()
	defer l.lag.mu.Unlock()
	return l.lag.records
}

// follow asks a consumer for its lag until ctx ends. Consumers try on for as long as a broker is
// away or refuses, within Poll: this is where a job hears of it.
func (l *Loop) follow(ctx context.Context, consumer lagging) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, lagWithin)
		records, err := consumer.Lag(asking)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.lag.set(nil)
			l.Tracker.Begin(consuming, err)
		default:
			l.lag.set(&records)
			l.Tracker.End(consuming)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
