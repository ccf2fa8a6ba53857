package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitsGrow(t *testing.T) {
	b := Backoff{First: 100 * time.Millisecond, Most: time.Second}
	for range 2 {
		for _, millis := range []int{100, 200, 400, 800, 1000, 1000} {
			plan := time.Duration(millis) * time.Millisecond
			if wait := b.Next(); wait < plan/2 || wait > plan {
				t.Errorf("it waits for %v of %v", wait, plan)
			}
		}
		b.Reset()
	}
}

func TestWaitsDiffer(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 20 {
		b := Backoff{First: time.Second, Most: time.Second}
		seen[b.Next()] = true
	}
	if len(seen) < 2 {
		t.Error("all wait equally long")
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		goesOn := (&Backoff{First: time.Hour, Most: time.Hour}).Sleep(ctx)
		if took := time.Since(began); took != 10*time.Millisecond || goesOn {
			t.Errorf("it slept for %v, and its context goes on: %v", took, goesOn)
		}
		began = time.Now()
		goesOn = Sleep(t.Context(), time.Hour)
		if took := time.Since(began); took != time.Hour || !goesOn {
			t.Errorf("it slept for %v, and its context goes on: %v", took, goesOn)
		}
	})
}
