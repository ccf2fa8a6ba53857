package redisstream

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

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

// retryAfter keeps processes that lost Redis at the same time from retrying at the same time.
func retryAfter() time.Duration {
	return 100*time.Millisecond + rand.N(100*time.Millisecond)
}

// ended says whether ctx has ended, or does so within a moment: connections have its deadline
// too, and may be a little earlier.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < time.Millisecond
}
