package contract

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Lock is the seam of electing a leader; package leader says what it promises.
type Lock interface {
	Acquire(ctx context.Context, holder string, ttl time.Duration) (token uint64, err error)
	Renew(ctx context.Context) (held bool, err error)
	Release(ctx context.Context) error
}

// Lease runs the suite. open makes the lock of a new name: another returns one more
// Lock of that name, as another process has it, and expire ends the lease of whoever
// holds it, as time does.
func Lease(t *testing.T, open func(t *testing.T) (another func() Lock, expire func())) {
	tests := []struct {
		name string
		run  func(s leases)
	}{
		{"a free lock", leases.free},
		{"a lock that is held", leases.held},
		{"a release hands over", leases.handOver},
		{"a lease that expired", leases.expired},
		{"the same holder again", leases.again},
		{"a late release harms nobody", leases.lateRelease},
		{"without a lease", leases.without},
		{"an ended context", leases.endedContext},
		{"contenders", leases.contenders},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another, expire := open(t)
			test.run(leases{t, another, expire})
		})
	}
}

const leaseTTL = 10 * time.Second

type leases struct {
	*testing.T
	another func() Lock
	expire  func()
}

// try is one attempt, which may wait for a moment.
func (s leases) try(lock Lock, holder string) uint64 {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	token, err := lock.Acquire(ctx, holder, leaseTTL)
	if err != nil {
		s.Fatalf("acquire for %s: %v", holder, err)
	}
	return token
}

// take takes a lock that is free, or is after a while, and wants a token beyond.
func (s leases) take(lock Lock, holder string, beyond uint64) uint64 {
	s.Helper()
	for start := time.Now(); time.Since(start) < patience; {
		if token := s.try(lock, holder); token > beyond {
			return token
		} else if token != 0 {
			s.Fatalf("%s has token %d after token %d", holder, token, beyond)
		}
	}
	s.Fatalf("%s does not get the lock", holder)
	return 0
}

func (s leases) wantHeld(lock Lock, want bool) {
	s.Helper()
	if held, err := lock.Renew(s.Context()); err != nil || held != want {
		s.Fatalf("renew: held %v and error %v, want %v", held, err, want)
	}
}

func (s leases) release(lock Lock) {
	s.Helper()
	if err := lock.Release(s.Context()); err != nil {
		s.Fatalf("release: %v", err)
	}
}

func (s leases) free() {
	lock := s.another()
	if s.try(lock, "a") == 0 {
		s.Fatal("a free lock is not to be had")
	}
	s.wantHeld(lock, true)
	s.wantHeld(lock, true)
}

func (s leases) held() {
	a, b := s.another(), s.another()
	s.take(a, "a", 0)
	ctx, cancel := context.WithTimeout(s.Context(), 200*time.Millisecond)
	defer cancel()
	if token, err := b.Acquire(ctx, "b", leaseTTL); token != 0 || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("b has token %d and error %v beside a", token, err)
	}
	s.wantHeld(a, true)
	s.wantHeld(b, false)
}

func (s leases) handOver() {
	a, b := s.another(), s.another()
	first, second := s.take(a, "a", 0), make(chan uint64, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() { defer close(second); second <- s.take(b, "b", first) })
	s.release(a)
	waiting.Wait()
	s.wantHeld(a, false)
	s.wantHeld(b, true)
	s.release(b)
	s.take(a, "a", <-second)
}

func (s leases) expired() {
	a, b := s.another(), s.another()
	first := s.take(a, "a", 0)
	s.expire()
	s.wantHeld(a, false)
	s.take(b, "b", first)
	s.wantHeld(a, false)
	s.wantHeld(b, true)
}

func (s leases) again() {
	a := s.another()
	token := s.take(a, "a", 0)
	s.expire()
	token = s.take(a, "a", token)
	s.release(a)
	token = s.take(a, "a", token)
	s.release(a)
	s.take(s.another(), "a", token)
}

func (s leases) lateRelease() {
	a, b := s.another(), s.another()
	token := s.take(a, "a", 0)
	s.expire()
	s.take(b, "b", token)
	s.release(a)
	s.wantHeld(b, true)
}

func (s leases) without() {
	a := s.another()
	s.wantHeld(a, false)
	s.release(a)
	s.take(a, "a", 0)
	s.release(a)
	s.release(a)
	s.wantHeld(a, false)
}

func (s leases) endedContext() {
	a, b := s.another(), s.another()
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if token, err := a.Acquire(ctx, "a", leaseTTL); token != 0 || !errors.Is(err, context.Canceled) {
		s.Fatalf("got token %d and error %v", token, err)
	}
	token := s.take(b, "b", 0)
	if held, err := b.Renew(ctx); held || !errors.Is(err, context.Canceled) {
		s.Fatalf("renew: held %v and error %v", held, err)
	}
	if err := b.Release(ctx); !errors.Is(err, context.Canceled) {
		s.Fatalf("release: %v", err)
	}
	s.release(b)
	s.take(a, "a", token)
}

// contenders have several take turns: one at a time, each with a greater token.
func (s leases) contenders() {
	const contenders, turns = 3, 4
	var inside atomic.Int32
	var last atomic.Uint64
	var all sync.WaitGroup
	for i := range contenders {
		lock, name := s.another(), numbered("holder-", i)
		all.Go(func() {
			for range turns {
				token := s.take(lock, name, 0)
				if inside.Add(1) != 1 {
					s.Error("two hold the lock")
				}
				if before := last.Swap(token); before >= token {
					s.Errorf("token %d after %d", token, before)
				}
				inside.Add(-1)
				s.release(lock)
			}
		})
	}
	all.Wait()
}
