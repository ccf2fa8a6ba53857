package consulregistry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"
)

const (
	awaitFor  = 5 * time.Second // the longest wait for a lock that is held
	lockDelay = time.Second     // from the end of a session that held the lock to the next one
)

// Lock is a lock with a lease: a key of Consul, held by a session. Its methods are
// for one goroutine at a time, and one process may have several locks.
//
// The session has no health checks, so nothing but its time to live and an
// operator can end it: a leader whose node only looks dead would not know. It
// releases the key when it ends and does not delete it.
type Lock struct {
	client  *Client
	key     string
	session string // that holds the key, or may; empty: none
}

// Lock makes the lock of a key. It sends nothing yet.
func (c *Client) Lock(key string) *Lock { return &Lock{client: c, key: key} }

// Acquire waits a few seconds at most for the lock to be free, and takes it for
// ttl (10 s at least) from its last renewal; the key's value names the holder. The
// token grows with every acquisition, by any process, for as long as Consul keeps
// its data: it is the index of the log entry that took the lock. It is 0 when
// another process holds the lock.
func (l *Lock) Acquire(ctx context.Context, holder string, ttl time.Duration) (token uint64, err error) {
	if err := l.Release(ctx); err != nil { // what an earlier failure has left
		return 0, err
	}
	if free, err := l.awaitFree(ctx); err != nil || !free {
		return 0, err
	}
	session := &api.SessionEntry{Name: l.key, TTL: ttl.String(), LockDelay: lockDelay, Behavior: api.SessionBehaviorRelease}
	if l.session, _, err = l.client.api.Session().CreateNoChecks(session, writing(ctx)); err != nil {
		return 0, fmt.Errorf("consul: session for lock %s: %w", l.key, err)
	}
	token, err = l.take(ctx, holder)
	if token == 0 {
		err = errors.Join(err, l.abandon(ctx))
	}
	return token, err
}

// awaitFree says whether the lock is free.
func (l *Lock) awaitFree(ctx context.Context) (bool, error) {
	opt := reading(ctx)
	pair, meta, err := l.client.api.KV().Get(l.key, opt)
	if err == nil && pair != nil && pair.Session != "" {
		opt.WaitIndex, opt.WaitTime = max(meta.LastIndex, 1), awaitFor
		pair, _, err = l.client.api.KV().Get(l.key, opt)
	}
	if err != nil {
		return false, fmt.Errorf("consul: lock %s: %w", l.key, err)
	}
	return pair == nil || pair.Session == "", nil
}

// take is 0 when another process was faster, or when the lock's delay is not over.
func (l *Lock) take(ctx context.Context, holder string) (uint64, error) {
	ops := api.KVTxnOps{{Verb: api.KVLock, Key: l.key, Value: []byte(holder), Session: l.session}}
	ok, done, _, err := l.client.api.KV().Txn(ops, reading(ctx))
	if err != nil {
		return 0, fmt.Errorf("consul: acquire lock %s: %w", l.key, err)
	}
	if !ok {
		return 0, nil
	}
	if len(done.Results) != 1 || done.Results[0] == nil || done.Results[0].ModifyIndex == 0 {
		return 0, fmt.Errorf("consul: acquire lock %s: an answer without an index", l.key)
	}
	return done.Results[0].ModifyIndex, nil
}

// Renew begins the lease's time to live anew, unless it is lost for good. An error
// leaves open what happened.
func (l *Lock) Renew(ctx context.Context) (held bool, err error) {
	if l.session == "" {
		return false, nil
	}
	session, _, err := l.client.api.Session().Renew(l.session, writing(ctx))
	if err != nil {
		return false, fmt.Errorf("consul: renew lock %s: %w", l.key, err)
	}
	if session == nil {
		return false, nil
	}
	// The session may live on without its key: an operator can delete that.
	pair, _, err := l.client.api.KV().Get(l.key, reading(ctx))
	if err != nil {
		return false, fmt.Errorf("consul: renew lock %s: %w", l.key, err)
	}
	return pair != nil && pair.Session == l.session, nil
}

// Release gives the lock back for the next one to take at once. Without a lease,
// held or lost, it does nothing.
func (l *Lock) Release(ctx context.Context) error {
	if l.session == "" {
		return nil
	}
	// First the key: the end of a session that holds one would begin the lock's delay.
	if _, _, err := l.client.api.KV().Release(&api.KVPair{Key: l.key, Session: l.session}, writing(ctx)); err != nil {
		return fmt.Errorf("consul: release lock %s: %w", l.key, err)
	}
	return l.end(ctx)
}

// abandon ends a session that should not hold the lock, even when ctx has ended.
func (l *Lock) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	return l.Release(ctx)
}

func (l *Lock) end(ctx context.Context) error {
	if _, err := l.client.api.Session().Destroy(l.session, writing(ctx)); err != nil {
		return fmt.Errorf("consul: end the session of lock %s: %w", l.key, err)
	}
	l.session = ""
	return nil
}
