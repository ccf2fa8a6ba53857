package models

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/stream"
)

// appChange is what an update makes of an app: an Ensemble or a PolicyChange.
type appChange interface {
	app() string
	// check says everything that is wrong with the change by itself, or nil.
	check() error
	// asks are the models that there must be.
	asks() []string
	// members are what changes of the app, as the management API shows it; nil: there is none.
	members(before map[string]any) (map[string]any, error)
}

// configuration is a change on its way to an app.
type configuration struct {
	handler *handler
	change  appChange
	origin  origin
	later   []string // models that stay, if the app asks them: updates behind this one had it do so
}

// run makes the app, or changes it, as far as it is not so. It fails with a rejection, or with
// what may pass.
func (c *configuration) run(ctx context.Context) (Acknowledgement, error) {
	app := c.change.app()
	ack := Acknowledgement{Outcome: Configured, App: app}
	if err := c.modelsAreThere(ctx); err != nil {
		return ack, err
	}
	var before map[string]any
	etag, err := c.handler.api.do(ctx, apiclient.Request{Method: http.MethodGet, Path: []string{"apps", app}}, &before)
	if is(err, http.StatusNotFound) {
		members, err := c.change.members(nil)
		if err != nil {
			return ack, err
		}
		members["labels"] = c.origin.labels()
		_, err = c.handler.api.do(ctx, apiclient.Request{Method: http.MethodPost, Path: []string{"apps"}, Body: members}, nil)
		return ack, again(err)
	}
	if err != nil {
		return ack, err
	}
	members, err := c.change.members(before)
	if err != nil {
		return ack, err
	}
	if models, named := members["models"].([]string); named {
		members["models"] = append(slices.Clip(models), c.brought(before, models)...)
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
	maps.Copy(before, members) // what the update does not name stays
	before["labels"] = by.relabel(labels)
	_, err = c.handler.api.do(ctx, apiclient.Request{Method: http.MethodPut, Path: []string{"apps", app}, Body: before, IfMatch: etag}, nil)
	return ack, again(err)
}

// brought are the models that updates behind this one have brought already.
func (c *configuration) brought(before map[string]any, models []string) (more []string) {
	for _, name := range texts(before["models"]) {
		if slices.Contains(c.later, name) && !slices.Contains(models, name) {
			more = append(more, name)
		}
	}
	return more
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

// again retries where another client made a change meanwhile.
func again(err error) error {
	if exists(err) || is(err, http.StatusPreconditionFailed) {
		return errAgain
	}
	return refused(err, "the app")
}

// modelsAreThere looks for the models, which may still be on their way.
func (c *configuration) modelsAreThere(ctx context.Context) error {
	for _, name := range c.change.asks() {
		if err := c.handler.api.find(ctx, "model", name); err != nil {
			return err
		}
	}
	return nil
}

// checked says what is wrong with the change, or nil.
func (c *configuration) checked() *stream.Rejection {
	if err := c.change.check(); err != nil {
		return rejected(Invalid, "%v", err)
	}
	return nil
}
