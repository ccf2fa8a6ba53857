package inprocess

import (
	"context"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// Wakes passes on, inside this process, which versions are asked and have no
// replica. It is the twin of the stream in Redis.
type Wakes struct {
	mu        sync.Mutex // guards the following
	followers map[chan serving.ModelID]struct{}
}

// NewWakes has no followers.
func NewWakes() *Wakes { return &Wakes{followers: map[chan serving.ModelID]struct{}{}} }

// pendingWakes bounds the wakes that wait for a busy follower. A version that still has requests
// is named again.
const pendingWakes = 256

// Wake informs all followers.
func (w *Wakes) Wake(_ context.Context, id serving.ModelID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for f := range w.followers {
		select {
		case f <- id:
		default:
		}
	}
	return nil
}

// Wakes calls wake for every version that is named from now on, until ctx ends.
func (w *Wakes) Wakes(ctx context.Context, wake func(serving.ModelID)) error {
	f := make(chan serving.ModelID, pendingWakes)
	w.mu.Lock()
	w.followers[f] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.followers, f)
		w.mu.Unlock()
	}()
	for {
		select {
		case id := <-f:
			wake(id)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
