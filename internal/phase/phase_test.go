package phase_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/phase"
)

// story is what jobs did, in its order.
type story struct {
	mu   sync.Mutex
	told []string
}

func (s *story) tell(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, what)
}

// job takes a while to finish when its context has ended.
func (s *story) job(name string, finishes time.Duration) phase.Job {
	return func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(finishes)
		s.tell(name)
		return fmt.Errorf("%s: %w", name, ctx.Err())
	}
}

func TestPhasesEndInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s story
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, stop)
		begun := time.Now()
		err := phase.Run(ctx, phase.Phase{s.job("slow", 3*time.Second), s.job("fast", time.Second)}, phase.Phase{}, phase.Phase{s.job("last", 0)})
		if took := time.Since(begun); err != nil || took != time.Minute+3*time.Second || !slices.Equal(s.told, []string{"fast", "slow", "last"}) {
			t.Fatalf("after %v: %v, error %v", took, s.told, err)
		}
	})
}

func TestAJobThatIsDoneEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s story
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		done := func(context.Context) error { s.tell("done"); return nil }
		if err := phase.Run(ctx, phase.Phase{done}, phase.Phase{s.job("rest", 0)}); err != nil || !slices.Equal(s.told, []string{"done", "rest"}) || ctx.Err() == nil {
			t.Fatalf("got %v, error %v", s.told, err)
		}
	})
}

// TestAFailureEndsAllPhases has the first phase end first even if a job of the last one fails.
func TestAFailureEndsAllPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s story
		broken, late := errors.New("broken"), errors.New("cannot finish")
		fails := func(ctx context.Context) error { time.Sleep(time.Second); return broken }
		finishes := func(ctx context.Context) error { <-ctx.Done(); s.tell("finishes"); return late }
		err := phase.Run(t.Context(), phase.Phase{finishes, s.job("first", time.Second)}, phase.Phase{s.job("second", 0), fails})
		if !errors.Is(err, broken) || !errors.Is(err, late) || errors.Is(err, context.Canceled) || !slices.Equal(s.told, []string{"finishes", "first", "second"}) {
			t.Fatalf("got %v, error %v", s.told, err)
		}
	})
}

// TestACanceledCallFails: a job whose own context goes on has failed, whatever its error.
func TestACanceledCallFails(t *testing.T) {
	err := phase.Run(t.Context(), phase.Phase{func(context.Context) error { return context.Canceled }})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
}

func TestWithoutPhases(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := phase.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
