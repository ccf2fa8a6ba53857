package openaiengine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/containers/upstream"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// ServeAdapters serves the engine as a host: LoRA adapters are the versions that it loads, each by a name of its own
// at the engine. It runs until ctx ends.
func ServeAdapters(ctx context.Context, cfg Config, container gocontainer.Config) error {
	return serve(ctx, cfg, &container, func(ctx context.Context, e *engine) error {
		return gocontainer.ServeHost(ctx, container, e.loadAdapter)
	})
}

// loadAdapter implements gocontainer.LoadModel.
func (e *engine) loadAdapter(ctx context.Context, v rpc.Load, folder string) (*gocontainer.HostedModel, error) {
	if !v.InputType.Text() {
		return nil, fmt.Errorf("an engine takes requests of OpenAI's API, and the version has input_type %q: register it with chat, or strings", v.InputType)
	}
	text, err := os.ReadFile(filepath.Join(folder, bundle.ManifestName))
	if err != nil {
		return nil, err
	}
	m, err := bundle.ParseManifest(text)
	if err != nil {
		return nil, err
	}
	if m.Runtime != bundle.LoRARuntime {
		return nil, fmt.Errorf("the runtime of the bundle is %q, and an engine loads adapters: use runtime %q", m.Runtime, bundle.LoRARuntime)
	}
	if name := m.Options[bundle.AdapterOption]; name != "" {
		return &gocontainer.HostedModel{Predict: (&model{e, name}).predict}, e.lists(ctx, name)
	}
	name, path := v.Model.String(), filepath.Join(folder, m.Entry)
	size, err := sizeOf(path)
	if err != nil {
		return nil, err
	}
	if err := e.addAdapter(ctx, name, path); err != nil {
		return nil, err
	}
	e.adapters.Store(name, path)
	return &gocontainer.HostedModel{
		Predict: (&model{e, name}).predict, Memory: size,
		Unload: func(ctx context.Context) error {
			e.adapters.Delete(name)
			return e.adapt(ctx, "/unload_lora_adapter", map[string]string{"lora_name": name})
		},
	}, nil
}

// lists says whether the engine has a model, or an adapter, of its own by a name.
func (e *engine) lists(ctx context.Context, name string) error {
	names, err := e.models(ctx)
	if err != nil || slices.Contains(names, name) {
		return err
	}
	return fmt.Errorf("the engine has no model %q: it has %q", name, names)
}

// addAdapter has the engine load an adapter. One of the name that the engine has already is of an earlier definition, or an earlier container.
func (e *engine) addAdapter(ctx context.Context, name, path string) error {
	about := map[string]string{"lora_name": name, "lora_path": path}
	err := e.adapt(ctx, "/load_lora_adapter", about)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusBadRequest {
		if e.adapt(ctx, "/unload_lora_adapter", map[string]string{"lora_name": name}) == nil {
			return e.adapt(ctx, "/load_lora_adapter", about)
		}
	}
	return err
}

// restoreAdapters has an engine that has started again load what it had loaded.
func (e *engine) restoreAdapters(ctx context.Context) (err error) {
	var has []string
	e.adapters.Range(func(name, path any) bool {
		if has == nil {
			if has, err = e.models(ctx); err != nil {
				return false
			}
		}
		if slices.Contains(has, name.(string)) {
			return true
		}
		if why := e.addAdapter(ctx, name.(string), path.(string)); why != nil {
			e.cfg.Log.Warn("an adapter cannot be loaded again", "adapter", name, "err", why)
		}
		return true
	})
	return err
}

// errNoAdapters is for engines that cannot load adapters while they run.
var errNoAdapters = errors.New("the engine loads no adapters while it runs: start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, " +
	"SGLang with --enable-lora, or start any engine with the adapter and name it in the bundle's option " + bundle.AdapterOption)

// adapt calls the engine's API for adapters, which vLLM has below /v1, and SGLang at the root.
func (e *engine) adapt(ctx context.Context, path string, about map[string]string) error {
	body, err := json.Marshal(about)
	if err != nil {
		return err
	}
	for _, root := range []string{"/v1", ""} {
		response, err := e.server.Post(ctx, root+path, map[string]string{"Content-Type": "application/json"}, body)
		if err != nil {
			return err
		}
		said := upstream.Refusal(response)
		response.Body.Close()
		switch response.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			if !bytes.Contains(said, []byte(about["lora_name"])) { // so it is the path that is not there, and not the adapter
				continue
			}
		}
		return engineError(said, response.StatusCode)
	}
	return errNoAdapters
}

// sizeOf is how many bytes a file has, or all files of a folder.
func sizeOf(path string) (sum int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
