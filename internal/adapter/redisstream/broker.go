package redisstream

import (
	"log/slog"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
)

// Broker is the Redis that streams are in. Addrs and Log are required.
type Broker struct {
	redisclient.Server
	Log *slog.Logger
}

// callTimeout bounds a command, with its retries.
const callTimeout = 5 * time.Second
