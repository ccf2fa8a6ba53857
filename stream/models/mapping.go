package models

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// StreamChange says which apps predict the records of a data stream.
type StreamChange struct {
	Name string            `json:"name"`
	Apps map[string]string `json:"apps"` // by what records name, such as a type of data; empty: as the configuration says
}

// check says everything that is wrong with the change by itself, or nil.
func (s *StreamChange) check() error {
	errs := []error{serving.CheckStreamName(s.Name)}
	if len(s.Apps) == 0 || len(s.Apps) > mostNames {
		errs = append(errs, fmt.Errorf(`apps must have 1 to %d members, such as {"red": "red-wine"}`, mostNames))
	}
	for _, named := range slices.Sorted(maps.Keys(s.Apps))[:min(len(s.Apps), mostNames)] {
		if app := s.Apps[named]; app != "" {
			errs = append(errs, serving.CheckApps(app))
		}
	}
	return errors.Join(errs...)
}

// content is a checksum of the whole.
func (s *StreamChange) content() string { return contentOf(s) }

// mapping is a change on its way to a stream. To make it again changes nothing.
type mapping struct {
	handler *handler
	what    *StreamChange
}

// checked says what is wrong with the change, or nil.
func (m *mapping) checked() *stream.Rejection {
	if err := m.what.check(); err != nil {
		return rejected(Invalid, "%v", err)
	}
	return nil
}

// run changes the stream. It fails with a rejection, or with what may pass.
func (m *mapping) run(ctx context.Context) (Acknowledgement, error) {
	ack, apps := Acknowledgement{Outcome: Configured}, map[string]any{}
	if err := m.handler.api.find(ctx, "stream", m.what.Name); err != nil {
		return ack, err
	}
	for _, named := range slices.Sorted(maps.Keys(m.what.Apps)) {
		apps[named] = nil
		if app := m.what.Apps[named]; app != "" {
			apps[named] = app
			for _, one := range serving.SplitApps(app) {
				if err := m.handler.api.find(ctx, "app", one); err != nil {
					return ack, err
				}
			}
		}
	}
	_, err := m.handler.api.do(ctx, apiclient.Request{
		Method: http.MethodPatch, Path: []string{"streams", m.what.Name}, Body: map[string]any{"apps": apps}, Type: "application/merge-patch+json",
	}, nil)
	return ack, refused(err, "the stream")
}
