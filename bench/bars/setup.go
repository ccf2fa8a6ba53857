package main

import (
	"context"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// The one app of every case, and the body of every query.
const (
	appName     = "bench"
	queryPath   = "/" + appName + "/predict"
	queryBody   = `{"input":[0.1,0.2,0.3,0.4]}`
	inputLength = 4
)

// setup is how the processes of one variant are set up. Roles get it as JSON.
type setup struct {
	SLO        time.Duration
	CacheOff   bool
	Policy     serving.PolicySpec
	Batch      serving.BatchSpec
	Containers []string // one for each model; see containerModel; also "python" and "stages"

	Images bool // inputs are images of float32

	Endpoints []string // of the models' sidecars, for gateways
	Place     int      // which of the models, for sidecars and containers
	Sidecar   string   // of the model, for containers

	Stream streamSetup // for what serves one
}

func modelVersion(place int) serving.ModelID {
	return serving.ModelID{Model: "model" + strconv.Itoa(place), Version: "1"}
}

// replicaName is the only replica of a model.
func replicaName(place int) string { return modelVersion(place).String() + "/0" }

func (s setup) version(place int) *serving.Version {
	of, length := s.input()
	return &serving.Version{ModelID: modelVersion(place), InputType: of, InputLength: length, Replicas: 1, Batch: s.Batch}
}

// input is the type and the length of inputs.
func (s setup) input() (of serving.InputType, length int) {
	if s.Images {
		return serving.Floats, pixels
	}
	return serving.Doubles, inputLength
}

// Watch implements gateway.Catalog: the catalog never changes.
func (s setup) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	of, _ := s.input()
	app := &serving.App{
		Name: appName, InputType: of, DefaultOutput: "-1", OutputType: serving.OutputNumber, SLO: serving.Duration(s.SLO),
		Policy: s.Policy, Cache: serving.CacheSpec{Off: s.CacheOff},
	}
	models := map[string]*serving.Model{}
	for place := range s.Containers {
		v := s.version(place)
		app.Models = append(app.Models, v.Model)
		models[v.Model] = &serving.Model{Name: v.Model, Current: v.Version, Versions: map[string]*serving.Version{v.Version: v}}
	}
	update(&serving.Catalog{Revision: 1, Apps: map[string]*serving.App{appName: app}, Models: models})
	<-ctx.Done()
	return ctx.Err()
}
