package stream

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

// cannotConsume is the condition of a job whose broker is unavailable or refuses.
const cannotConsume = "cannot " + consuming

// lag is how many records the group has not committed, as far as that is known.
type lag struct {
	mu      sync.Mutex
	records *int64 // nil: it is not known
}

func (l *lag) set(records *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = records
}

func (l *lag) get() *int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records
}

// followLag asks a consumer for its lag until ctx ends. Poll retries for as long as a broker
// is unavailable or refuses: this is where a job learns of it.
func (j *Job) followLag(ctx context.Context, consumer Lagging) {
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
			j.lag.set(nil)
			j.Conditions.Begin(consuming, err)
		default:
			j.lag.set(&records)
			j.Conditions.End(consuming)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
