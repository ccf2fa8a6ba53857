package httpapi

import (
	"context"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/gateway/timing"
	"github.com/topsail-serving/topsail/serving"
)

// Core is what the server asks.
type Core interface {
	Predictor
	Timer
	Streamer
	Repository
}

// Repository is what the Open Inference Protocol asks besides.
type Repository interface {
	inference.Repository
	// Inferences are what the queries of an app came to since this gateway has known it.
	Inferences(app string) serving.Inferences
}

// Streamer answers queries in parts.
type Streamer interface {
	// Stream asks a query. It fails as Predict does.
	Stream(q *serving.Query) (serving.Parts, error)
}

// Timer answers queries and says where the time went.
type Timer interface {
	// PredictTimed is a Predictor's PredictBatch. It fills in from Selected to Combined
	// how the first query came to its answer.
	PredictTimed(ctx context.Context, qs []serving.Query, first *timing.Timing) ([]serving.Prediction, error)
}

// Predictor answers queries. Of its errors, serving.ErrUnknownApp, serving.ErrNoCatalog and
// *serving.QueryError are for the client; any other is logged, and the client gets only a request
// id.
type Predictor interface {
	// App finds a registered app, or fails with serving.ErrUnknownApp or
	// serving.ErrNoCatalog. It must not keep name, whose memory is reused.
	App(name string) (*serving.App, error)
	// Predict answers by the query's deadline. ctx ends only when the server has
	// no more time: a client that leaves is not noticed.
	Predict(ctx context.Context, q *serving.Query) (serving.Prediction, error)
	// PredictBatch answers queries to one app, possibly none, in their order.
	PredictBatch(ctx context.Context, qs []serving.Query) ([]serving.Prediction, error)
}
