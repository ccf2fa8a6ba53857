// Package openaiengine is a model container that passes queries on to an inference engine with
// OpenAI's HTTP API, such as vLLM, SGLang, llama.cpp or TGI, as docs/engines.md describes.
package openaiengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/containers/upstream"
)

// Config says where the engine is and how it is used.
type Config struct {
	URL           string        // without /v1
	Model         string        // the engine's name of it; empty: the first that it lists
	APIKey        string        // empty: none
	ReadyPath     string        // answers 200 when the engine is ready
	MetricsPath   string        // empty: the engine has no metrics
	Idle          time.Duration // the longest pause between chunks of an answer
	ForwardCancel bool          // the request of a query that is cancelled is cancelled, too
	Problem       func(error)   // unless it is nil, called with why the engine is not ready, and with nil when it is
	Log           *slog.Logger

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil: as package upstream does
}

// engine is the engine that the container stands before.
type engine struct {
	cfg    Config
	server *upstream.Server
	name   atomic.Pointer[string] // the engine's own of the model
	up     atomic.Bool            // it answered its ready path
	load   load

	adapters sync.Map // the paths of those that it has loaded, by name

	lifetime context.Context // of requests that are not to be cancelled with their queries
	running  sync.WaitGroup  // those
}

// Serve serves the engine as the model of container, until ctx ends.
func Serve(ctx context.Context, cfg Config, container gocontainer.Config) error {
	if container.Signature != nil || container.InputType != 0 && !container.InputType.Text() {
		return errors.New("an engine takes requests of OpenAI's API: register the version with input_type chat, or strings, without a signature")
	}
	return serve(ctx, cfg, &container, func(ctx context.Context, e *engine) error {
		return gocontainer.ServeStreams(ctx, container, e.predict)
	})
}

// serve runs a container before the engine.
func serve(ctx context.Context, cfg Config, container *gocontainer.Config, run func(context.Context, *engine) error) error {
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx)) // the last answers come after the end of ctx
	defer stop()
	e, err := newEngine(lifetime, cfg)
	if err != nil {
		return err
	}
	container.Ready, container.Metrics, container.Log = e.watch, e.metrics, cfg.Log
	err = run(ctx, e)
	stop()
	e.running.Wait()
	e.server.Close()
	return err
}

func newEngine(lifetime context.Context, cfg Config) (*engine, error) {
	for _, path := range []string{cfg.ReadyPath, cmp.Or(cfg.MetricsPath, "/")} {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%q is not a path of the engine: it begins with /", path)
		}
	}
	if cfg.Idle <= 0 {
		return nil, fmt.Errorf("an engine may pause for more than %v within an answer: the default is 60s", cfg.Idle)
	}
	server, err := upstream.New(upstream.Config{URL: strings.TrimSuffix(strings.TrimRight(cfg.URL, "/"), "/v1"), APIKey: cfg.APIKey, Log: cfg.Log, Problem: cfg.Problem, Dial: cfg.dial})
	if err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg, server: server, lifetime: lifetime}
	if cfg.Model != "" {
		e.name.Store(&cfg.Model)
	}
	return e, nil
}
