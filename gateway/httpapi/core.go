package httpapi

import (
	"context"

	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// Core answers queries. Of its errors, serving.ErrUnknownApp, serving.ErrNoCatalog and
// *serving.QueryError are for the client; any other is logged, and the client gets only a request
// id.
type Core interface {
	inference.Repository
	// App finds a registered app, or fails with serving.ErrUnknownApp or
	// serving.ErrNoCatalog. It must not keep name, whose memory is reused.
	App(name string) (*serving.App, error)
	// Predict answers queries to one app, possibly none, by their deadlines and in their order. ctx
	// ends when the server has no more time, or the client has left.
	Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error)
	// Stream asks a query whose answer is to come in parts. It fails as Predict does.
	Stream(q *serving.Query) (serving.Parts, error)
	// Inferences are what the queries of an app came to since this gateway has known it.
	Inferences(app string) serving.Inferences
}

// Updater learns from feedback. Its errors are those of a Core, and serving.ErrUnavailable.
type Updater interface {
	// Feedback takes feedback on one app, possibly none, and says in its order what
	// became of each. What it has said is stored. It keeps nothing of the list's own
	// memory. ctx ends only when the server has no more time.
	Feedback(ctx context.Context, list []serving.Feedback) ([]serving.Learned, error)
}
