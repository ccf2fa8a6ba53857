package httpapi

import (
	"context"

	"topsail/serving"
)

// Predictor answers queries. Of its errors, serving.ErrUnknownApp and
// *serving.QueryError are for the client; any other is logged, and the client is
// told no more than a request id.
type Predictor interface {
	// App finds a registered app. It must not keep name, whose memory is reused.
	App(name string) (*serving.App, bool)
	// Predict answers by the query's deadline. ctx ends only when the server has
	// no more time: a client that leaves is not noticed.
	Predict(ctx context.Context, q *serving.Query) (serving.Prediction, error)
	// PredictBatch answers queries to one app, possibly none, in their order.
	PredictBatch(ctx context.Context, qs []serving.Query) ([]serving.Prediction, error)
}
