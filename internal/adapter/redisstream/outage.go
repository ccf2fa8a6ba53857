package redisstream

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// sayAgain is how often an outage that lasts is said.
const repeatLog = 30 * time.Second

// outage says when Redis goes away, now and then while it is, and when it is back.
type outage struct {
	log *slog.Logger

	mu    sync.Mutex
	err   error     // nil: there is none
	since time.Time // zero: there is none
	said  time.Time
}

func (o *outage) say(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.err = err
	if o.since.IsZero() {
		o.since = now
	}
	if now.Sub(o.said) >= repeatLog {
		o.said = now
		o.log.Warn("cannot consume from redis; retrying", "err", err)
	}
}

func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.log.Info("consuming from redis again", "after", time.Since(o.since).Round(time.Millisecond))
	}
	o.err, o.since, o.said = nil, time.Time{}, time.Time{}
}

// present is why nothing can be consumed, or nil.
func (o *outage) present() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// LogClient has the client library say what it says about single connections to a log, at
// its level of debugging. The library has one log for the whole process: call it before
// anything of Redis is opened.
func LogClient(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client: "+fmt.Sprintf(format, args...))
	}
}

// retryAfter keeps processes that lost Redis together from asking again together.
func retryAfter() time.Duration {
	return 100*time.Millisecond + rand.N(100*time.Millisecond)
}

// ended says whether ctx has ended, or does so within a moment: connections have its deadline
// too, and may be a little earlier.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < time.Millisecond
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
