package manage

import (
	"context"
	"log/slog"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// Learning is what policies have learned, as a store has it.
type Learning struct {
	Store interface {
		state.Store
		gateway.StateStore
		Catalog() *serving.Catalog
	}
	Log     *slog.Logger
	Corrupt obs.Counter // counts states that are damaged
}

// Learned implements api.Learning.
func (l Learning) Learned(ctx context.Context, app, user, about string) (*serving.Learning, error) {
	return gateway.Learned(ctx, state.ForReading(l.Store, l.Log, l.Corrupt), l.Store.Catalog(), app, user, about)
}

// Forget implements api.Learning.
func (l Learning) Forget(ctx context.Context, app, user, about string) error {
	return gateway.Forget(ctx, l.Store, l.Store.Catalog(), app, user, about)
}
