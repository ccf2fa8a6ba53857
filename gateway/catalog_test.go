package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitingARevision ends with it, with a later one, or with its context.
func TestAwaitingARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRevisions()
		began := time.Now()
		within := func(d time.Duration, revision uint64) time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			from := time.Now()
			r.await(ctx, revision)
			return time.Since(from)
		}
		if took := within(time.Second, 0); took != time.Second {
			t.Errorf("without a catalog: after %v", took)
		}
		for revision := range uint64(3) {
			time.AfterFunc(time.Duration(revision+1)*time.Minute, func() { r.set(revision) })
		}
		for revision := range uint64(3) {
			within(time.Hour, revision)
			if want := time.Second + time.Duration(revision+1)*time.Minute; time.Since(began) != want {
				t.Errorf("revision %d: after %v, want %v", revision, time.Since(began), want)
			}
		}
		if took := within(time.Hour, 1); took != 0 {
			t.Errorf("an earlier one: after %v", took)
		}
	})
}
