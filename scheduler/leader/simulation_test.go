package leader

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNeverTwoLeaders runs three electors over a server that cuts each one's line
// at random and lets leases last longer than they must. No two may have a valid
// term at the same time, fences must grow, and after the failures one leads.
func TestNeverTwoLeaders(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
	}
}

// scene is what the leaders of a simulation do.
type scene struct {
	*testing.T
	seed uint64

	mu     sync.Mutex // guards the following
	terms  map[int]*Term
	last   uint64 // the greatest fence
	starts int
}

func simulate(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &scene{T: t, seed: seed, terms: map[int]*Term{}}
	srv := newServer()
	lasting := rand.New(rand.NewPCG(seed, 2)) // used under the server's lock
	srv.longer = func() time.Duration { return time.Duration(lasting.Int64N(int64(10 * time.Second))) }
	var locks []*fakeLock
	var stops []func() error
	for i := range 3 {
		lock := srv.lock()
		locks = append(locks, lock)
		stops = append(stops, start(t, lock, Config{}, func(ctx context.Context, term *Term) error {
			return s.act(ctx, i, term)
		}))
	}
	for range 60 {
		time.Sleep(time.Duration(r.Int64N(int64(8 * time.Second))))
		locks[r.IntN(3)].set(line(r.IntN(4)))
		if r.IntN(4) == 0 {
			locks[r.IntN(3)].set(up)
		}
	}
	for _, lock := range locks {
		lock.set(up)
	}
	time.Sleep(30 * time.Second)
	if s.leaders() != 1 {
		t.Errorf("seed %d: %d lead after the trouble", seed, s.leaders())
	}
	for _, stop := range stops {
		stop()
	}
	if s.starts < 2 {
		t.Errorf("seed %d: %d terms", seed, s.starts)
	}
}

// act looks often whether it leads alone, and may be slow to end.
func (s *scene) act(ctx context.Context, i int, term *Term) error {
	s.mu.Lock()
	if s.terms[i] != nil {
		s.Errorf("seed %d: elector %d has two copies", s.seed, i)
	}
	if term.Fence() <= s.last {
		s.Errorf("seed %d: fence %d after %d", s.seed, term.Fence(), s.last)
	}
	s.terms[i], s.last = term, term.Fence()
	s.starts++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.terms, i)
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if n := s.leaders(); n > 1 {
			s.Errorf("seed %d: %d lead", s.seed, n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			time.Sleep(time.Duration(term.Fence()%5) * time.Second)
			return nil
		}
	}
}

func (s *scene) leaders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, term := range s.terms {
		if term.Valid() {
			n++
		}
	}
	return n
}
