package stream

import (
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

// Backoff is how long to wait before something that a job needs is tried again.
func Backoff() retry.Backoff {
	return retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}
}
