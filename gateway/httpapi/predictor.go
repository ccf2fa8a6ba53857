package httpapi

import (
	"context"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// Core is what the server asks.
type Core interface {
	Predictor
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

// Predictor answers queries. Of its errors, serving.ErrUnknownApp, serving.ErrNoCatalog and
// *serving.QueryError are for the client; any other is logged, and the client gets only a request
// id.
type Predictor interface {
	// App finds a registered app, or fails with serving.ErrUnknownApp or
	// serving.ErrNoCatalog. It must not keep name, whose memory is reused.
	App(name string) (*serving.App, error)
	// Predict answers queries to one app, possibly none, by their deadlines and in their order. ctx
	// ends when the server has no more time, or the client has left.
	Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error)
}
