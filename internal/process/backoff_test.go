//go:build unix

package process

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// TestChildRestartEndsBackOff, and the next wait is as short as the first.
func TestChildRestartEndsBackOff(t *testing.T) {
	c := New(Spec{Name: "sh", Argv: sh("exit 1")}, testGuard(), slog.New(slog.DiscardHandler))
	waits, over := make(chan time.Duration), make(chan time.Time)
	c.after = func(d time.Duration) <-chan time.Time { waits <- d; return over }
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for range 2 {
		<-waits
		over <- time.Time{}
	}
	if third := <-waits; third < 2*firstDelay {
		t.Errorf("the third wait is %v", third)
	}
	c.Restart()
	if wait := <-waits; wait > firstDelay {
		t.Errorf("the wait after Restart is %v: not the first one again", wait)
	}
	if now := c.Snapshot(); now.State != BackingOff || now.Restarts != 3 {
		t.Errorf("%+v", now)
	}
}
