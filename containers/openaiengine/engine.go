// Package openaiengine is a model container that passes queries on to an inference engine with
// OpenAI's HTTP API, such as vLLM, SGLang, llama.cpp or TGI, as docs/engines.md describes.
package openaiengine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
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
	Log           *slog.Logger
}

const (
	connectWithin = 5 * time.Second
	maxIdleConns  = 1024
)

// engine is the engine that the container stands before.
type engine struct {
	cfg    Config
	base   string
	client *http.Client
	name   atomic.Pointer[string] // the engine's own of the model
	up     atomic.Bool            // it answered its ready path
	load   load

	lifetime context.Context // of requests that are not to be cancelled with their queries
	running  sync.WaitGroup  // those
}

// Serve serves the engine as the model of container, until ctx ends.
func Serve(ctx context.Context, cfg Config, container gocontainer.Config) error {
	if container.Signature != nil || container.InputType != 0 && !container.InputType.Text() {
		return errors.New("an engine takes requests of OpenAI's API: register the version with input_type chat, or strings, without a signature")
	}
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx)) // the last answers come after the end of ctx
	e, err := newEngine(lifetime, cfg)
	if err == nil {
		container.Ready, container.Metrics, container.Log = e.watch, e.metrics, cfg.Log
		err = gocontainer.ServeStreams(ctx, container, e.predict)
		stop()
		e.running.Wait()
	}
	stop()
	return err
}

func newEngine(lifetime context.Context, cfg Config) (*engine, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of an engine: name one like http://127.0.0.1:8000", cfg.URL)
	}
	for _, path := range []string{cfg.ReadyPath, cmp.Or(cfg.MetricsPath, "/")} {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%q is not a path of the engine: it begins with /", path)
		}
	}
	if cfg.Idle <= 0 {
		return nil, fmt.Errorf("an engine may pause for more than %v within an answer: the default is 60s", cfg.Idle)
	}
	e := &engine{cfg: cfg, base: strings.TrimSuffix(strings.TrimSuffix(cfg.URL, "/"), "/v1"), lifetime: lifetime}
	e.client = &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: connectWithin}).DialContext,
			TLSHandshakeTimeout: connectWithin,
			MaxIdleConns:        maxIdleConns,
			MaxIdleConnsPerHost: maxIdleConns,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true, // a compressed stream could come in fewer, later parts
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if cfg.Model != "" {
		e.name.Store(&cfg.Model)
	}
	return e, nil
}

// request makes a request to a path of the engine, with its key.
func (e *engine) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if e.cfg.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+e.cfg.APIKey)
	}
	return r, nil
}
