package models

import (
	"context"
	"maps"
	"net/http"
)

// configuration is an ensemble on its way to being an app.
type configuration struct {
	*applier
	ensemble *Ensemble
	origin   origin
}

// run makes the app, or changes it, as far as it is not so. It fails with a poison, or with
// what may pass.
func (c *configuration) run(ctx context.Context) (Acknowledgement, error) {
	ack := Acknowledgement{Outcome: Configured, App: c.ensemble.Name}
	members, err := c.ensemble.members()
	if err != nil {
		return ack, poisoned(Invalid, "%v", err)
	}
	members["labels"] = c.origin.labels()
	if err := c.modelsAreThere(ctx); err != nil {
		return ack, err
	}
	var before map[string]any
	etag, err := c.api.call(ctx, request{method: http.MethodGet, path: []string{"apps", c.ensemble.Name}}, &before)
	if is(err, http.StatusNotFound) {
		_, err = c.api.call(ctx, request{method: http.MethodPost, path: []string{"apps"}, body: members}, nil)
		return ack, again(err)
	}
	if err != nil {
		return ack, err
	}
	if made, ours := parseOrigin(texts(before["labels"])); ours {
		switch {
		case made.same(c.origin):
			return ack, nil // it was done, and not committed
		case made.after(c.origin):
			ack.Outcome = Outdated
			return ack, nil
		case made.content == c.origin.content:
			ack.Outcome = Unchanged
			return ack, nil
		}
	}
	maps.Copy(before, members) // what the ensemble does not name stays
	_, err = c.api.call(ctx, request{method: http.MethodPut, path: []string{"apps", c.ensemble.Name}, body: before, ifMatch: etag}, nil)
	return ack, again(err)
}

// texts are those of a list as JSON has it.
func texts(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// again has what somebody else did meanwhile looked at once more.
func again(err error) error {
	if exists(err) || is(err, http.StatusPreconditionFailed) {
		return errAgain
	}
	return refused(err, "the app")
}

// modelsAreThere looks for the models, which may still be on their way.
func (c *configuration) modelsAreThere(ctx context.Context) error {
	for _, name := range c.ensemble.Models {
		_, err := c.api.call(ctx, request{method: http.MethodGet, path: []string{"models", name}}, nil)
		if is(err, http.StatusNotFound) {
			return errMissing{"model", name}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checked says what is wrong with the ensemble, or nil.
func (c *configuration) checked() *poison {
	if err := c.ensemble.check(); err != nil {
		return poisoned(Invalid, "%v", oneLine(err))
	}
	return nil
}
