package openaiengine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/topsail-serving/topsail/containers/upstream"
)

const maxModels = 1 << 20

// watch says whether the engine is ready, until ctx ends.
func (e *engine) watch(ctx context.Context, set func(ready bool)) {
	e.server.Watch(ctx, e.cfg.ReadyPath, e.begin, func(ready bool) {
		e.up.Store(ready)
		set(ready)
	})
}

// begin asks an engine that has started for what is to be known of it.
func (e *engine) begin(ctx context.Context) error {
	if err := e.findModel(ctx); err != nil {
		return err
	}
	return e.restoreAdapters(ctx)
}

// findModel asks for the name of the model, unless it is configured.
func (e *engine) findModel(ctx context.Context) error {
	if e.cfg.Model != "" {
		return nil
	}
	names, err := e.models(ctx)
	if err == nil {
		e.name.Store(&names[0])
	}
	return err
}

// models are the engine's own names of what it has.
func (e *engine) models(ctx context.Context) (names []string, err error) {
	b, err := e.server.Get(ctx, modelsPath, upstream.ProbeWithin, maxModels)
	if err != nil {
		return nil, err
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(b, &list); err != nil || len(list.Data) == 0 || list.Data[0].ID == "" {
		return nil, fmt.Errorf("%s lists no model: name the model", modelsPath)
	}
	for _, one := range list.Data {
		names = append(names, one.ID)
	}
	return names, nil
}
