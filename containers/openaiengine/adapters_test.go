package openaiengine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// adapterEngine is an engine that loads adapters below a root, unless that is "none".
func adapterEngine(t *testing.T, root string, has *[]string) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var about struct {
			Name string `json:"lora_name"`
			Path string `json:"lora_path"`
		}
		switch path := strings.TrimPrefix(q.URL.Path, root); {
		case q.URL.Path == modelsPath:
			io.WriteString(w, `{"data": [{"id": "base"}, {"id": "polite"}]}`)
		case q.URL.Path == chatPath:
			fmt.Fprint(w, `{"choices": [{"message": {"content": "hi"}}]}`)
		case !strings.HasPrefix(q.URL.Path, root):
			http.NotFound(w, q)
		case path == "/load_lora_adapter" || path == "/unload_lora_adapter":
			if err := json.NewDecoder(q.Body).Decode(&about); err != nil {
				t.Error(err)
			}
			at := slices.Index(*has, about.Name)
			switch {
			case path == "/load_lora_adapter" && at < 0 && strings.HasSuffix(about.Path, "/weights"):
				*has = append(*has, about.Name)
			case path == "/unload_lora_adapter" && at >= 0:
				*has = slices.Delete(*has, at, at+1)
			default:
				w.WriteHeader(http.StatusBadRequest)
				io.WriteString(w, `{"message": "it cannot be"}`)
			}
		default:
			http.NotFound(w, q)
		}
	}
}

// bundleOf is a bundle of an adapter, unpacked.
func bundleOf(t *testing.T, manifest string) string {
	folder := t.TempDir()
	for name, text := range map[string]string{"manifest.json": `{"format": 1, ` + manifest + `}`, "weights/adapter_config.json": "{}", "weights/adapter_model.safetensors": "123"} {
		file := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return folder
}

const adapterManifest = `"runtime": "lora", "entry": "weights", "files": {"weights/adapter_config.json": {"sha256": "", "size": 2}}`

func chatVersion(model string) rpc.Load {
	return rpc.Load{InputType: serving.Chat, Model: serving.ModelID{Model: model, Version: "2"}}
}

func TestAdapters(t *testing.T) {
	folder := bundleOf(t, adapterManifest)
	for _, root := range []string{"/v1", ""} { // as vLLM has it, and as SGLang
		has := []string{"stale:2"}
		atEngine(t, testConfig(), nil, func(r *rig) {
			r.handle(adapterEngine(t, root, &has))
			for _, name := range []string{"tuned", "stale"} {
				m, err := r.loadAdapter(r.Context(), chatVersion(name), folder)
				require.NoError(r, err)
				q := gocontainer.Query{Inputs: []serving.Value{serving.Text(chat)}, Left: -1}
				if a := m.Predict(r.Context(), &q, nil); a.Err != nil || r.request["model"] != name+":2" || m.Memory != 5 {
					r.Errorf("%v, of %v, with %d bytes", a.Err, r.request["model"], m.Memory)
				}
				if !slices.Contains(has, name+":2") {
					r.Errorf("the engine has %q", has)
				}
				if err := m.Unload(r.Context()); err != nil || slices.Contains(has, name+":2") {
					r.Errorf("unloaded, the engine has %q (%v)", has, err)
				}
			}
		})
	}
}

// An engine that has started again has forgotten what it loaded, also when it was not away for long enough to count as gone.
func TestAdaptersOfAnEngineThatStartsAgain(t *testing.T) {
	for away, ready := range map[time.Duration]int32{3 * time.Second: 1, 10 * time.Second: 2} {
		t.Run(away.String(), func(t *testing.T) { testStartsAgain(t, away, ready) })
	}
}

func testStartsAgain(t *testing.T, away time.Duration, ready int32) {
	folder := bundleOf(t, adapterManifest)
	var has []string
	var starts atomic.Int32
	atEngine(t, testConfig(), nil, func(r *rig) {
		adapters := adapterEngine(t, "/v1", &has)
		up := func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path != "/health" {
				adapters(w, q)
			}
		}
		r.handle(up)
		ctx, stop := context.WithCancel(r.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			r.watch(ctx, func(ready bool) {
				if ready {
					starts.Add(1)
				}
			})
		})
		kept, err := r.loadAdapter(ctx, chatVersion("kept"), folder)
		require.NoError(r, err)
		left, err := r.loadAdapter(ctx, chatVersion("left"), folder)
		require.NoError(r, err)
		if err := left.Unload(ctx); err != nil {
			r.Error(err)
		}
		time.Sleep(3 * time.Second)
		r.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		time.Sleep(away)
		has = nil
		r.handle(up)
		time.Sleep(10 * time.Second)
		stop()
		watching.Wait()
		if starts.Load() != ready || !slices.Equal(has, []string{"kept:2"}) {
			r.Errorf("ready %d times, the engine has %q", starts.Load(), has)
		}
		if err := kept.Unload(r.Context()); err != nil || len(has) > 0 {
			r.Errorf("unloaded, the engine has %q (%v)", has, err)
		}
	})
}

// What the engine was started with is asked by its own name, and stays there.
func TestAdaptersOfTheEngineItself(t *testing.T) {
	folder := bundleOf(t, `"runtime": "lora", "options": {"adapter": "polite"}, "files": {}`)
	var has []string
	atEngine(t, testConfig(), nil, func(r *rig) {
		r.handle(adapterEngine(t, "none", &has))
		m, err := r.loadAdapter(r.Context(), chatVersion("tuned"), folder)
		require.NoError(r, err)
		q := gocontainer.Query{Inputs: []serving.Value{serving.Text(chat)}, Left: -1}
		if a := m.Predict(r.Context(), &q, nil); a.Err != nil || r.request["model"] != "polite" || m.Unload != nil {
			r.Errorf("%v, of %v", a.Err, r.request["model"])
		}
	})
}

func TestAdaptersThatCannotBeLoaded(t *testing.T) {
	var has []string
	for want, load := range map[string]func(r *rig) error{
		"the engine loads no adapters": func(r *rig) error {
			r.handle(adapterEngine(t, "/none", &has))
			_, err := r.loadAdapter(r.Context(), chatVersion("m"), bundleOf(t, adapterManifest))
			return err
		},
		"400 Bad Request: it cannot be": func(r *rig) error {
			manifest := `"runtime": "lora", "entry": "weights/adapter_config.json", "files": {"weights/adapter_config.json": {"sha256": "", "size": 2}}`
			_, err := r.loadAdapter(r.Context(), chatVersion("m"), bundleOf(t, manifest))
			return err
		},
		"404 Not Found: Loading lora m:2 failed": func(r *rig) error {
			r.handle(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound) // as vLLM 0.32 does
				io.WriteString(w, `{"error": {"message": "Loading lora m:2 failed: No adapter found for <path>", "type": "NotFoundError", "param": null, "code": 404}}`)
			})
			_, err := r.loadAdapter(r.Context(), chatVersion("m"), bundleOf(t, adapterManifest))
			return err
		},
		`no model "rude": it has ["base" "polite"]`: func(r *rig) error {
			_, err := r.loadAdapter(r.Context(), chatVersion("m"), bundleOf(t, `"runtime": "lora", "options": {"adapter": "rude"}, "files": {}`))
			return err
		},
		`use runtime "lora"`: func(r *rig) error {
			_, err := r.loadAdapter(r.Context(), chatVersion("m"), bundleOf(t, `"runtime": "command", "command": ["x"], "files": {}`))
			return err
		},
		"register it with chat": func(r *rig) error {
			_, err := r.loadAdapter(r.Context(), rpc.Load{InputType: serving.Doubles}, "")
			return err
		},
		"no such file": func(r *rig) error {
			_, err := r.loadAdapter(r.Context(), chatVersion("m"), t.TempDir())
			return err
		},
	} {
		atEngine(t, testConfig(), nil, func(r *rig) {
			r.handle(adapterEngine(t, "/v1", &has))
			if err := load(r); err == nil || !strings.Contains(err.Error(), want) {
				r.Errorf("%v, want %s", err, want)
			}
		})
	}
}
