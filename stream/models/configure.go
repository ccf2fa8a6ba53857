package models

import (
	"context"
	"maps"
	"net/http"

	"github.com/topsail-serving/topsail/internal/apiclient"
)

// configuration is an ensemble on its way to being an app.
type configuration struct {
	job      *Job
	ensemble *Ensemble
	origin   origin
}

// run makes the app, or changes it, as far as it is not so. It fails with a rejection, or with
// what may pass.
func (c *configuration) run(ctx context.Context) (Acknowledgement, error) {
	ack := Acknowledgement{Outcome: Configured, App: c.ensemble.Name}
	members, err := c.ensemble.members()
	if err != nil {
		return ack, rejected(Invalid, "%v", err)
	}
	if err := c.modelsAreThere(ctx); err != nil {
		return ack, err
	}
	var before map[string]any
	etag, err := c.job.api.do(ctx, apiclient.Request{Method: http.MethodGet, Path: []string{"apps", c.ensemble.Name}}, &before)
	if is(err, http.StatusNotFound) {
		members["labels"] = c.origin.labels()
		_, err = c.job.api.do(ctx, apiclient.Request{Method: http.MethodPost, Path: []string{"apps"}, Body: members}, nil)
		return ack, again(err)
	}
	if err != nil {
		return ack, err
	}
	labels, by := texts(before["labels"]), c.origin
	if made, ours := parseOrigin(labels); ours {
		switch {
		case made.same(by): // it was done, and not committed
			if made.again {
				ack.Outcome = Unchanged
			}
			return ack, nil
		case made.after(by):
			ack.Outcome = Outdated
			return ack, nil
		case made.content == by.content: // nothing changes but which update was the last
			ack.Outcome, by.again, members = Unchanged, true, nil
		}
	}
	maps.Copy(before, members) // what the ensemble does not name stays
	before["labels"] = by.relabel(labels)
	_, err = c.job.api.do(ctx, apiclient.Request{Method: http.MethodPut, Path: []string{"apps", c.ensemble.Name}, Body: before, IfMatch: etag}, nil)
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
		if err := c.job.api.find(ctx, "model", name); err != nil {
			return err
		}
	}
	return nil
}

// checked says what is wrong with the ensemble, or nil.
func (c *configuration) checked() *rejection {
	if err := c.ensemble.check(); err != nil {
		return rejected(Invalid, "%v", err)
	}
	return nil
}
