package route

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
)

// Resolver knows where replicas are.
type Resolver interface {
	// Watch calls update with the whole list, at once and then whenever it
	// changes, until ctx ends. When the source cannot be asked, the last list
	// stays good.
	Watch(ctx context.Context, update func([]serving.Endpoint)) error
}
