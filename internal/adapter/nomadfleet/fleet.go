// Package nomadfleet runs the replicas of model versions as jobs of Nomad: one job
// for each version, made by package jobs, its count changed through Nomad's scale
// API. The standard NOMAD_* variables say where Nomad is.
package nomadfleet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// patience bounds one call of Nomad's API.
const patience = 10 * time.Second

// Config says which Nomad, and what its jobs have in common. Region and namespace
// of the jobs are also those of the API, and the other way round where empty.
type Config struct {
	API       *api.Config // nil: api.DefaultConfig, the standard variables
	TokenFile string      // when set, holds the token; read again when the token is refused
	Jobs      jobs.Settings
	// Version is a version as it is registered now, nil where it is not. With it a
	// job of a version that was defined anew is outdated. nil: definitions stay.
	Version func(serving.ModelID) *serving.Version
	// Bundles says why no replica could fetch a bundle from management, or nil. A version
	// that needs one is not started then. nil: that is not looked at.
	Bundles func(ctx context.Context) error
	Log     *slog.Logger
}

// Fleet is the jobs of all model versions. Its methods may be called at the same
// time.
type Fleet struct {
	client   *api.Client
	token    token
	settings jobs.Settings
	version  func(serving.ModelID) *serving.Version
	bundles  func(ctx context.Context) error
	log      *slog.Logger

	changing locks // by job

	mu      sync.Mutex
	details map[string]*detail // of the jobs of the last list, by id
	specs   map[serving.ModelID]spec
}

// Open prepares a fleet; it makes no call.
func Open(cfg Config) (*Fleet, error) {
	if err := cfg.Jobs.Check(); err != nil {
		return nil, err
	}
	conf := api.DefaultConfig()
	if cfg.API != nil {
		own := *cfg.API
		conf = &own
	}
	conf.Region = cmp.Or(cfg.Jobs.Region, conf.Region)
	conf.Namespace = cmp.Or(cfg.Jobs.Namespace, conf.Namespace)
	cfg.Jobs.Region, cfg.Jobs.Namespace = conf.Region, conf.Namespace
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, fmt.Errorf("nomad at %s: %w", conf.Address, err)
	}
	f := &Fleet{client: client, token: token{file: cfg.TokenFile}, settings: cfg.Jobs, version: cfg.Version, bundles: cfg.Bundles, log: cfg.Log, details: map[string]*detail{}, specs: map[serving.ModelID]spec{}}
	if _, err := f.token.reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// read makes one call that reads.
func read[T any](ctx context.Context, f *Fleet, call func(*api.QueryOptions) (T, *api.QueryMeta, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return withToken(&f.token, func(token string) (T, error) {
		value, _, err := call((&api.QueryOptions{AuthToken: token}).WithContext(ctx))
		return value, err
	})
}

// write makes one call that changes something.
func write[T any](ctx context.Context, f *Fleet, call func(*api.WriteOptions) (T, *api.WriteMeta, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return withToken(&f.token, func(token string) (T, error) {
		value, _, err := call((&api.WriteOptions{AuthToken: token}).WithContext(ctx))
		return value, err
	})
}
