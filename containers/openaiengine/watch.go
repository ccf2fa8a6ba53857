package openaiengine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	probeWithin = 5 * time.Second
	probeEvery  = 2 * time.Second
	firstPause  = 200 * time.Millisecond // between probes while the engine is not ready; doubles up to probeEvery
	maxFailures = 3                      // in a row, of an engine that was ready
	maxModels   = 1 << 20
)

// watch says whether the engine is ready, until ctx ends.
func (e *engine) watch(ctx context.Context, set func(ready bool)) {
	for e.await(ctx) {
		e.cfg.Log.Info("the engine is ready", "url", e.base, "model", *e.name.Load())
		e.up.Store(true)
		set(true)
		err := e.guard(ctx)
		e.up.Store(false)
		if ctx.Err() == nil {
			e.cfg.Log.Warn("the engine does not answer any more", "err", err)
			set(false)
		}
	}
}

// await returns when the engine is ready, and says whether that came before the end of ctx.
func (e *engine) await(ctx context.Context) bool {
	for pause, told := firstPause, false; ; pause = min(2*pause, probeEvery) {
		err := e.probe(ctx)
		if err == nil {
			err = e.findModel(ctx)
		}
		if err == nil {
			return true
		}
		if !told && ctx.Err() == nil {
			e.cfg.Log.Info("waiting for the engine", "url", e.base, "err", err)
			told = true
		}
		if !wait(ctx, pause) {
			return false
		}
	}
}

// guard returns when the engine has failed several probes, with the error of the last.
func (e *engine) guard(ctx context.Context) error {
	for failures := 0; wait(ctx, probeEvery); {
		err := e.probe(ctx)
		if err == nil {
			failures = 0
			continue
		}
		if failures++; failures == maxFailures {
			return err
		}
	}
	return ctx.Err()
}

// wait waits for d, and says whether that came before the end of ctx.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// probe asks whether the engine is ready.
func (e *engine) probe(ctx context.Context) error {
	_, err := e.get(ctx, e.cfg.ReadyPath, probeWithin, maxError)
	return err
}

// findModel asks for the name of the model, unless it is configured.
func (e *engine) findModel(ctx context.Context) error {
	if e.cfg.Model != "" {
		return nil
	}
	b, err := e.get(ctx, modelsPath, probeWithin, maxModels)
	if err != nil {
		return err
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(b, &list); err != nil || len(list.Data) == 0 || list.Data[0].ID == "" {
		return fmt.Errorf("%s%s lists no model: name the model", e.base, modelsPath)
	}
	e.name.Store(&list.Data[0].ID)
	return nil
}

// get is what a path has, up to a number of bytes.
func (e *engine) get(ctx context.Context, path string, within time.Duration, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := e.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	response, err := e.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s%s answered %s", e.base, path, response.Status)
	}
	return b, err
}
