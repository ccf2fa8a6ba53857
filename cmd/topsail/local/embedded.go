package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
)

// Embedded is local mode inside another program, which calls its gateway. It has the state and the replicas that
// `topsail local` has, and neither ports, management nor streams.
type Embedded struct {
	*gateway.Gateway
	parts *parts
	opt   Options
}

// Open opens the state of a configuration; Run starts the rest, and closes it. No two may use one data directory at a time.
func Open(ctx context.Context, cfg *config.Config, opt Options) (*Embedded, error) {
	if data, updates := cfg.Served(); len(data)+len(updates) > 0 {
		return nil, errors.New("streams are not served inside another program: serve them with topsail local or topsail stream, or take them out of the configuration")
	}
	if opt.Out == nil {
		opt.Out = io.Discard
	}
	p, err := openParts(ctx, role.New(cfg, opt.Log), nil, opt)
	if err != nil {
		return nil, err
	}
	return &Embedded{p.gateway, p, opt}, nil
}

// Run answers queries until ctx ends, then stops all replicas and closes the state.
func (e *Embedded) Run(ctx context.Context) error {
	err := phase.Run(ctx, e.parts.phases(nil)...)
	return errors.Join(err, e.parts.store.Close())
}

// Metrics are those of the gateway and the replicas.
func (e *Embedded) Metrics() *obs.Registry { return e.parts.base.Metrics }

// AwaitModels returns when the linked models have ready replicas, and fails where some have failed, or are still starting
// when ctx ends.
func (e *Embedded) AwaitModels(ctx context.Context) error {
	e.AwaitCatalog(ctx, 0)
	list, _ := e.parts.view.awaitModels(ctx, e.opt.Out)
	var failures []error
	for _, m := range list {
		switch {
		case m.why != "":
			failures = append(failures, fmt.Errorf("%v has failed: %s (its output is in %s)", m.id, m.why, e.parts.fleet.logs()))
		default:
			failures = append(failures, fmt.Errorf("%v has not started in time: allow more, or see its output in %s", m.id, e.parts.fleet.logs()))
		}
	}
	return errors.Join(failures...)
}
