package inprocess

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
)

func TestWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id := NewWakes(), serving.ModelID{Model: "m", Version: "1"}
		if err := w.Wake(t.Context(), id); err != nil { // nobody hears it
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		heard := make(chan serving.ModelID, 1000)
		ended := make(chan error, 1)
		go func() { ended <- w.Wakes(ctx, func(id serving.ModelID) { heard <- id }) }()
		synctest.Wait()
		for range 3 {
			_ = w.Wake(t.Context(), id)
		}
		synctest.Wait()
		if len(heard) != 3 || <-heard != id {
			t.Errorf("heard %d wakes, want 3", len(heard)+1)
		}
		stop()
		if err := <-ended; err == nil || len(w.followers) != 0 {
			t.Errorf("ended with %v and %d followers", err, len(w.followers))
		}
	})
}

// TestManyWakes does not block on a follower that does.
func TestManyWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWakes()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		block := make(chan struct{})
		go func() { _ = w.Wakes(ctx, func(serving.ModelID) { <-block }) }()
		synctest.Wait()
		for range 10 * pendingWakes {
			_ = w.Wake(t.Context(), serving.ModelID{Model: "m", Version: "1"})
		}
		close(block)
		synctest.Wait()
	})
}
