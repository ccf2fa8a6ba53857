package leader

import (
	"context"
	"time"
)

// Lock is held by one process at a time, under a lease. An Elector has a Lock of
// its own and calls it from one goroutine at a time. All methods return soon after
// ctx has ended.
type Lock interface {
	// Acquire may wait for the lock to be free and then takes it for at least ttl. The token is
	// greater than every token before; it is 0 when another process holds the lock.
	Acquire(ctx context.Context, holder string, ttl time.Duration) (token uint64, err error)
	// Renew begins ttl anew. Without held and without an error the lease is lost
	// for good; an error leaves that open.
	Renew(ctx context.Context) (held bool, err error)
	// Release gives the lock back, for another to take at once. Without a
	// lease it does nothing.
	Release(ctx context.Context) error
}
