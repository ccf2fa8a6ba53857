package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// predict answers the body of a predict request as the query port does, by the app's objective.
func (i *instance) predict(app string, body []byte) ([]byte, error) {
	received := time.Now()
	ctx, known, done, err := i.begin(app, body)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := codec.DecodePredict(body, known, i.limits.MaxBatch)
	if err != nil {
		return nil, err
	}
	p.App, p.Received = known.Name, received
	answers, err := i.local.Predict(ctx, p.Queries(nil)...)
	if err != nil {
		return nil, explained(err)
	}
	return codec.AppendBatch(nil, answers), nil
}

// feedback learns from the body of an update request, and answers as the query port does clients that accept JSON.
func (i *instance) feedback(app string, body []byte) ([]byte, error) {
	received := time.Now()
	ctx, known, done, err := i.begin(app, body)
	if err != nil {
		return nil, err
	}
	defer done()
	u, err := codec.DecodeUpdate(body, known, i.limits.MaxBatch)
	if err != nil {
		return nil, err
	}
	for at := range u.Feedback {
		f := &u.Feedback[at]
		f.App, f.Received = known.Name, received
	}
	learned, err := i.local.Feedback(ctx, u.Feedback)
	switch {
	case err != nil:
		return nil, explained(err)
	case u.Batch:
		return codec.AppendLearnedBatch(nil, learned), nil
	}
	return codec.AppendLearned(nil, &learned[0]), nil
}

// app finds the app that a body is for.
func (i *instance) app(name string, body []byte) (*serving.App, error) {
	if len(body) > i.limits.MaxBodyBytes {
		return nil, fmt.Errorf("the body has %d bytes, and may have %d: send less, or raise gateway.max_body_bytes", len(body), i.limits.MaxBodyBytes)
	}
	app, err := i.local.App(name)
	if errors.Is(err, serving.ErrUnknownApp) {
		return nil, fmt.Errorf("%w: %q: add an [[app]] to the configuration, or check its spelling", err, name)
	}
	return app, err
}

// explained says what to do about an error that can pass.
func explained(err error) error {
	if errors.Is(err, serving.ErrUnavailable) || errors.Is(err, serving.ErrUnjudged) {
		return fmt.Errorf("%w: send it again later, which is safe", err)
	}
	return err
}
