package stream

import (
	"context"

	"topsail/serving"
)

// Scorer answers queries; a gateway does. Many goroutines use it.
type Scorer interface {
	// App finds a registered app, or fails with serving.ErrUnknownApp, or with
	// serving.ErrNoCatalog while it is not known yet which apps there are.
	App(name string) (*serving.App, error)
	// Predict answers by the app's SLO, with its default where no prediction could be
	// had. It fails as App does, with a *serving.QueryError for a query that cannot be,
	// and when ctx ends.
	Predict(ctx context.Context, q *serving.Query) (serving.Prediction, error)
}
