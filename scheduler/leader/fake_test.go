package leader

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/contract"
)

// server is a lock's server, as Consul is one: a lease lasts its time to live or
// longer, and after its end the lock stays closed for a moment.
type server struct {
	longer    func() time.Duration // what a lease lasts beyond its time to live
	lockDelay time.Duration

	mu      sync.Mutex // guards the following
	holder  *fakeLock
	token   uint64
	expires time.Time
	closed  time.Time // until when
}

func newServer() *server {
	return &server{longer: func() time.Duration { return 0 }, lockDelay: time.Second}
}

// line is what is between a process and the server.
type line int

const (
	up     line = iota
	down        // requests fail at once
	hangs       // requests are lost, as are their answers
	oneWay      // requests arrive, answers are lost
)

var errDown = errors.New("the server is not reached")

type fakeLock struct {
	server *server
	mu     sync.Mutex // guards line
	line   line
	ttl    time.Duration
}

func (s *server) lock() *fakeLock { return &fakeLock{server: s} }

func (l *fakeLock) set(to line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = to
}

// call does something at the server, as far as the line allows.
func (l *fakeLock) call(ctx context.Context, do func(s *server, now time.Time)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	line := l.line
	l.mu.Unlock()
	if line == up || line == oneWay {
		l.server.mu.Lock()
		l.server.settle(time.Now())
		do(l.server, time.Now())
		l.server.mu.Unlock()
	}
	switch line {
	case down:
		return errDown
	case hangs, oneWay:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// settle ends the lease whose time has passed.
func (s *server) settle(now time.Time) {
	if s.holder != nil && now.After(s.expires) {
		s.holder, s.closed = nil, s.expires.Add(s.lockDelay)
	}
}

func (s *server) held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(time.Now())
	return s.holder != nil
}

// leased says whether the last lease would still run, had it not been given back.
func (s *server) leased() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.expires)
}

// expire ends the lease now.
func (s *server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder, s.closed = nil, time.Now().Add(s.lockDelay)
}

func (l *fakeLock) Acquire(ctx context.Context, _ string, ttl time.Duration) (token uint64, err error) {
	err = l.call(ctx, func(s *server, now time.Time) {
		if s.holder == nil && !now.Before(s.closed) {
			s.token++
			s.holder, s.expires, l.ttl, token = l, now.Add(ttl+s.longer()), ttl, s.token
		}
	})
	if err != nil {
		return 0, err
	}
	return token, nil
}

func (l *fakeLock) Renew(ctx context.Context) (held bool, err error) {
	err = l.call(ctx, func(s *server, now time.Time) {
		if held = s.holder == l; held {
			s.expires = now.Add(l.ttl + s.longer())
		}
	})
	return held && err == nil, err
}

func (l *fakeLock) Release(ctx context.Context) error {
	return l.call(ctx, func(s *server, _ time.Time) {
		if s.holder == l {
			s.holder = nil
		}
	})
}

func TestFakeLockContract(t *testing.T) {
	contract.Lease(t, func(*testing.T) (func() contract.Lock, func()) {
		s := newServer()
		s.lockDelay = 10 * time.Millisecond
		return func() contract.Lock { return s.lock() }, s.expire
	})
}
