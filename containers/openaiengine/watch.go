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
	e.server.Watch(ctx, e.cfg.ReadyPath, e.findModel, func(ready bool) {
		e.up.Store(ready)
		set(ready)
	})
}

// findModel asks for the name of the model, unless it is configured.
func (e *engine) findModel(ctx context.Context) error {
	if e.cfg.Model != "" {
		return nil
	}
	b, err := e.server.Get(ctx, modelsPath, upstream.ProbeWithin, maxModels)
	if err != nil {
		return err
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(b, &list); err != nil || len(list.Data) == 0 || list.Data[0].ID == "" {
		return fmt.Errorf("%s lists no model: name the model", modelsPath)
	}
	e.name.Store(&list.Data[0].ID)
	return nil
}
