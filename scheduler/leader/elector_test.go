package leader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stand runs an elector whose work notes its terms and waits for their ends.
type stand struct {
	lock  *fakeLock
	terms chan *Term
	ends  chan error // why the context of a term ended
	stop  func() error
}

func run(t *testing.T, lock *fakeLock, cfg Config) *stand {
	s := &stand{lock: lock, terms: make(chan *Term, 1000), ends: make(chan error, 1000)}
	s.stop = start(t, lock, cfg, func(ctx context.Context, term *Term) error {
		s.terms <- term
		<-ctx.Done()
		s.ends <- context.Cause(ctx)
		return ctx.Err()
	})
	return s
}

var errStop = errors.New("stopped by the test")

// start runs an elector; stop ends it and waits.
func start(t *testing.T, lock Lock, cfg Config, lead func(context.Context, *Term) error) (stop func() error) {
	cfg.Lock = lock
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(cfg).Run(ctx, lead) }()
	return func() error {
		cancel(errStop)
		return <-done
	}
}

func TestLeadsForAsLongAsItRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		s := run(t, srv.lock(), Config{})
		time.Sleep(time.Hour)
		if len(s.terms) != 1 || len(s.ends) != 0 {
			t.Fatalf("%d terms, %d ends", len(s.terms), len(s.ends))
		}
		term := <-s.terms
		if term.Fence() != 1 || !term.Valid() || term.Check() != nil {
			t.Errorf("fence %d, %v", term.Fence(), term.Check())
		}
		if err := s.stop(); err != errStop {
			t.Errorf("run returned %v", err)
		}
		if term.Valid() || !errors.Is(term.Check(), ErrLost) {
			t.Error("the term is valid after the end")
		}
		if srv.held() {
			t.Error("the lock is not given back")
		}
	})
}

// TestTermEndsBeforeItsLease cuts the line in every way: the term must be over
// before anybody else can have the lock, and not much too early.
func TestTermEndsBeforeItsLease(t *testing.T) {
	for name, cut := range map[string]line{"down": down, "hangs": hangs, "answers are lost": oneWay} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer()
				s := run(t, srv.lock(), Config{TTL: 10 * time.Second, Margin: 2 * time.Second})
				term := <-s.terms
				time.Sleep(time.Minute + time.Second)
				s.lock.set(cut)
				at := time.Now()
				err := <-s.ends
				if took := time.Since(at); took > 8*time.Second || took < 6*time.Second {
					t.Errorf("it takes %v to notice", took)
				}
				if !errors.Is(err, ErrLost) || term.Valid() {
					t.Errorf("the context ended by %v, the term is valid: %v", err, term.Valid())
				}
				if !srv.leased() {
					t.Error("the lease ended before the term")
				}
				s.lock.set(up)
				if next := <-s.terms; next.Fence() <= term.Fence() || term.Valid() {
					t.Errorf("fence %d after %d", next.Fence(), term.Fence())
				}
				s.stop()
			})
		})
	}
}

func TestShortTroubleCostsNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, newServer().lock(), Config{})
		for range 20 {
			for _, l := range []line{down, hangs, oneWay} {
				s.lock.set(l)
				time.Sleep(4*time.Second - time.Millisecond) // a term has 8 s, and is renewed every 2 s at the earliest
				s.lock.set(up)
				time.Sleep(5 * time.Second)
			}
		}
		if len(s.terms) != 1 {
			t.Errorf("%d terms", len(s.terms))
		}
		s.stop()
	})
}

func TestLostLeaseEndsTheTermAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		s := run(t, srv.lock(), Config{})
		term := <-s.terms
		time.Sleep(time.Minute)
		srv.expire()
		at := time.Now()
		if err := <-s.ends; !errors.Is(err, ErrLost) || time.Since(at) > 2*time.Second {
			t.Errorf("ended by %v after %v", err, time.Since(at))
		}
		if next := <-s.terms; next.Fence() <= term.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), term.Fence())
		}
		s.stop()
	})
}

// TestNoSecondCopy has work that goes on for long after its term.
func TestNoSecondCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		var inside, copies atomic.Int32
		stop := start(t, srv.lock(), Config{}, func(ctx context.Context, term *Term) error {
			if inside.Add(1) != 1 {
				t.Error("two copies")
			}
			defer inside.Add(-1)
			copies.Add(1)
			<-ctx.Done()
			time.Sleep(time.Minute)
			return nil
		})
		for range 10 {
			time.Sleep(30 * time.Second)
			srv.expire()
		}
		if n := copies.Load(); n < 3 {
			t.Errorf("%d terms in five minutes", n)
		}
		stop()
	})
}

// TestKeepsTheLeaseWhileItEnds stops an elector whose work needs longer than a
// lease to end: nobody may lead meanwhile, and somebody must soon afterwards.
func TestKeepsTheLeaseWhileItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		started, ended := make(chan *Term, 1), make(chan time.Time, 1)
		stop := start(t, srv.lock(), Config{}, func(ctx context.Context, term *Term) error {
			started <- term
			<-ctx.Done()
			time.Sleep(time.Minute)
			if !term.Valid() {
				t.Error("the term ended before its work")
			}
			ended <- time.Now()
			return nil
		})
		<-started
		next := run(t, srv.lock(), Config{})
		go stop()
		<-next.terms
		select {
		case at := <-ended:
			if took := time.Since(at); took > time.Second {
				t.Errorf("handing over takes %v", took)
			}
		default:
			t.Error("two lead")
		}
		next.stop()
	})
}

func TestWorkThatFailsIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := 0
		stop := start(t, newServer().lock(), Config{}, func(context.Context, *Term) error {
			terms++
			return errors.New("broken")
		})
		time.Sleep(time.Minute)
		stop()
		if terms < 20 || terms > 40 {
			t.Errorf("%d terms in a minute", terms)
		}
	})
}

func TestFencesGrowBeyondTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, floor := newServer(), uint64(0)
		cfg := Config{Floor: func(context.Context) (uint64, error) { return floor, nil }}
		for range 5 {
			s := run(t, srv.lock(), cfg)
			term := <-s.terms
			if term.Fence() <= floor {
				t.Errorf("fence %d, floor %d", term.Fence(), floor)
			}
			floor = term.Fence() // the state has seen it
			s.stop()
			srv.token = 0 // it has lost its data
		}
	})
}

// TestFencesGrowWithoutTheFloor: a term that knew no floor is behind none of those
// that did, and they are not behind it.
func TestFencesGrowWithoutTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, last := newServer(), uint64(0)
		for i := range 6 {
			s := run(t, srv.lock(), Config{Floor: func(context.Context) (uint64, error) { return last * uint64(i%2), nil }})
			term := <-s.terms
			if term.Fence() <= last {
				t.Errorf("fence %d after %d", term.Fence(), last)
			}
			last = term.Fence()
			s.stop()
		}
	})
}

func TestNoTermWithoutTheFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		var away atomic.Bool
		away.Store(true)
		s := run(t, srv.lock(), Config{Floor: func(context.Context) (uint64, error) {
			if away.Load() {
				return 0, errDown
			}
			return 7, nil
		}})
		other := run(t, srv.lock(), Config{})
		if term := <-other.terms; term.Fence() == 0 || len(s.terms) > 0 {
			t.Error("a term without a floor, or a lock that is not given back")
		}
		other.stop()
		away.Store(false)
		if term := <-s.terms; term.Fence() <= 7 {
			t.Errorf("fence %d", term.Fence())
		}
		s.stop()
	})
}

func TestRemaining(t *testing.T) {
	start := time.Now()
	wall := start.Round(0) // without the monotonic clock
	for _, test := range []struct {
		name       string
		since, now time.Time
		want       time.Duration
	}{
		{"at once", start, start, 8 * time.Second},
		{"later", start, start.Add(3 * time.Second), 5 * time.Second},
		{"over", start, start.Add(9 * time.Second), -time.Second},
		{"the machine slept", start, wall.Add(time.Minute), -52 * time.Second},
	} {
		if got := remaining(8*time.Second, test.since, test.now); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
