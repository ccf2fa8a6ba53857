package records

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Scorer answers queries; a gateway does. Many goroutines use it.
type Scorer interface {
	// App finds a registered app, or fails with serving.ErrUnknownApp, or with
	// serving.ErrNoCatalog while it is not known yet which apps there are.
	App(name string) (*serving.App, error)
	// Predict answers queries by the app's SLO, with its default where no prediction could be
	// had. It fails as App does, with a *serving.QueryError for a query that cannot be,
	// and when ctx ends.
	Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error)
	// Capacity is how many ready replicas answer the queries of an app, and what a query
	// would wait there as they reported lately. 0 of both is what an unknown app has.
	Capacity(app string) (replicas int, wait time.Duration)
}
