package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/containers/oipservice"
	"github.com/topsail-serving/topsail/containers/openaiengine"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// instance is one instance of a service.
type instance struct {
	*service
	name string // of the replica that it is to gateways
	url  string
	stop context.CancelFunc

	mu      sync.Mutex // guards the following
	problem error      // why it is not ready; nil: it is
	since   time.Time  // that this is so
}

// errConnecting is why an instance is not ready that was not called yet.
var errConnecting = errors.New("it has not answered yet")

// note notes why the instance is not ready; nil: it is.
func (i *instance) note(problem error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if (i.problem == nil) != (problem == nil) {
		i.since = time.Now()
	}
	i.problem = problem
}

// run calls the instance until ctx ends, and then answers what is under way.
func (i *instance) run(ctx context.Context) {
	if err := i.serve(ctx); err != nil {
		i.cfg.Log.Error("an instance of a service is not called", "replica", i.name, "err", err)
	}
}

func (i *instance) serve(ctx context.Context) error {
	gateways, containers := i.cfg.Local.Listen(), i.cfg.Local.Listen()
	s := sidecar.New(sidecar.Config{
		Replica: i.name, Models: []*serving.Version{i.version}, Demand: i.cfg.Demand,
	}, i.cfg.Metrics, i.cfg.Log)

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() {
		Announce(running, i.cfg.Registry, serving.Endpoint{
			Replica: i.name, Addr: gateways.Addr().String(), Models: []serving.Definition{i.version.Definition()},
		}, s.Ready, nil)
	})
	parts.Go(func() { i.contain(running, containers.Addr().String()) })
	return s.Run(ctx, gateways, containers)
}

// retryAfter is how long a container that could not start waits, such as for the file of a key.
const retryAfter = 5 * time.Second

// contain runs the container of the instance until ctx ends.
func (i *instance) contain(ctx context.Context, sidecar string) {
	for ctx.Err() == nil {
		err := i.call(ctx, gocontainer.Config{
			Sidecar: sidecar, Dial: i.cfg.Local.Dial, Model: i.version.ModelID, InputType: i.version.InputType, InputLength: i.version.InputLength,
			Signature: i.version.Signature, Replica: i.name, Concurrency: uint32(i.version.Service.Concurrency), Log: i.cfg.Log,
		})
		if err != nil {
			i.note(err)
			i.cfg.Log.Error("an instance of a service cannot be called", "replica", i.name, "err", err)
		}
		retry.Sleep(ctx, retryAfter)
	}
}

// call serves the instance by its protocol.
func (i *instance) call(ctx context.Context, container gocontainer.Config) error {
	spec, log := i.version.Service, i.cfg.Log.With("replica", i.name)
	key, err := i.key()
	if err != nil {
		return err
	}
	if spec.Protocol == serving.ServiceOpenAI {
		return openaiengine.Serve(ctx, openaiengine.Config{
			URL: i.url, Model: spec.Model, APIKey: key, ReadyPath: i.version.ReadyPath(), MetricsPath: "/metrics",
			Idle: openAIIdle, ForwardCancel: true, Problem: i.note, Log: log,
		}, container)
	}
	return oipservice.Serve(ctx, oipservice.Config{
		URL: i.url, Path: spec.OIPPath(i.version.Model), ReadyPath: i.version.ReadyPath(), APIKey: key, Problem: i.note, Log: log,
	}, container)
}

// openAIIdle is the longest pause within an answer in parts, as `topsail engine openai` has it.
const openAIIdle = time.Minute

func (i *instance) key() (string, error) {
	file := i.version.Service.APIKeyFile
	if file == "" {
		return "", nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("service.api_key_file: %w", err)
	}
	return string(bytes.TrimSpace(key)), nil
}

// readyEvery is how often a replica is asked whether it is ready.
const readyEvery = 100 * time.Millisecond

// Announce keeps a replica of this process in a registry until ctx ends. first, unless it is nil, is called when it is ready for the
// first time.
func Announce(ctx context.Context, registry *inprocess.Registry, e serving.Endpoint, ready func() error, first func()) {
	defer registry.Remove(e.Replica)
	registry.Put(e)
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if is := ready() == nil; is != e.Ready {
				e.Ready = is
				registry.Put(e)
				if is && first != nil {
					first()
					first = nil
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
