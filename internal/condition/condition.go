package condition

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// Condition is one thing that may fail for a while, such as a store that is unavailable.
type Condition struct {
	Log    *slog.Logger
	Level  slog.Level    // of Begins; 0: a warning
	Begins string        // the line when it begins to fail
	Ends   string        // the line when it works again; empty: none
	Every  time.Duration // between lines while it fails; 0: there is one

	mu            sync.Mutex
	err           error // nil: it works
	since, logged time.Time
}

// Note is called whenever it was tried: nil says that it worked.
func (c *Condition) Note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && c.err != nil && c.Ends != "":
		c.Log.Info(c.Ends, "after", now.Sub(c.since).Round(time.Millisecond))
	case err != nil && c.err == nil:
		c.since = now
		c.begins(now, err)
	case err != nil && c.Every > 0 && now.Sub(c.logged) >= c.Every:
		c.begins(now, err)
	}
	c.err = err
}

func (c *Condition) begins(now time.Time, err error) {
	c.Log.Log(context.Background(), cmp.Or(c.Level, slog.LevelWarn), c.Begins, "err", err)
	c.logged = now
}

// Err is why it fails, or nil.
func (c *Condition) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
