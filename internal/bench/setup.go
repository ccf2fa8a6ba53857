package main

import (
	"context"
	"time"

	"topsail/serving"
)

// The one app and model of every case, and the body of every query.
const (
	appName     = "bench"
	queryPath   = "/" + appName + "/predict"
	queryBody   = `{"input":[0.1,0.2,0.3,0.4]}`
	inputLength = 4
)

// setup is how the processes of one variant are set up. Roles get it as JSON.
type setup struct {
	SLO       time.Duration
	CacheOff  bool
	Batch     serving.BatchSpec
	Container string // which model; see containerModel, and "python"

	Endpoint string // of the sidecar, for gateways
	Sidecar  string // of the sidecar, for containers
}

func modelVersion() serving.ModelID { return serving.ModelID{Model: "model", Version: "1"} }

func (s setup) version() *serving.Version {
	return &serving.Version{ModelID: modelVersion(), InputType: serving.Doubles, InputLength: inputLength, Replicas: 1, Batch: s.Batch}
}

// Watch implements gateway.Catalog: the catalog never changes.
func (s setup) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	v := s.version()
	app := &serving.App{
		Name: appName, InputType: v.InputType, DefaultOutput: "-1", SLO: s.SLO,
		Models: []string{v.Model}, Cache: serving.CacheSpec{Off: s.CacheOff},
	}
	update(&serving.Catalog{
		Revision: 1,
		Apps:     map[string]*serving.App{appName: app},
		Models:   map[string]*serving.Model{v.Model: {Name: v.Model, Current: v.Version, Versions: map[string]*serving.Version{v.Version: v}}},
	})
	<-ctx.Done()
	return ctx.Err()
}
