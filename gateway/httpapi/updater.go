package httpapi

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
)

// Updater learns from feedback. Its errors are those of a Predictor, and
// serving.ErrUnavailable.
type Updater interface {
	// Feedback takes feedback on one app, possibly none, and says in its order what
	// became of each. What it has said is stored. It keeps nothing of the list's own
	// memory. ctx ends only when the server has no more time.
	Feedback(ctx context.Context, list []serving.Feedback) ([]serving.Learned, error)
}
