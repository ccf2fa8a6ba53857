package serving

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Origin is what created an object, so that a configuration file removes only what it created.
type Origin string

const (
	FromFile  Origin = "file"  // the configuration file that the process was started with
	FromApply Origin = "apply" // a configuration file that was applied to what runs
	FromAPI   Origin = "api"
)

// App is what clients query, as the API, files and stores have it. An App in a Catalog is immutable.
type App struct {
	Name          string     `json:"name" required:"yes" help:"the name in the path of queries" flag:"-"`
	Description   string     `json:"description,omitempty" help:"a description for people"`
	InputType     InputType  `json:"input_type" required:"yes" help:"bytes, ints, floats, doubles or strings; chat, a request of OpenAI's API; tensors with the inputs of a signature"`
	Signature     *Signature `json:"signature,omitempty" help:"named inputs and outputs, with element types and shapes" flag:"-"`
	DefaultOutput string     `json:"default_output" accept:"integer float boolean" help:"the answer when no model answers in time; parsed as JSON where it is valid JSON" flag:"default"`
	SLO           Duration   `json:"latency_slo_micros" required:"yes" default:"100000" help:"time from receiving a query to its answer, in microseconds" flag:"slo"`
	Models        []string   `json:"models" help:"the linked models, in the order of linking" flag:"model"`
	Stages        Pipeline   `json:"stages,omitempty" help:"instead of models: the stages of a pipeline of models; the last one answers" flag:"-"`
	OutputType    OutputType `json:"output_type,omitempty" help:"number, label, vector or json: how the outputs of the models are read"`
	Policy        PolicySpec `json:"policy" help:"how models are chosen and their outputs combined" flag:"-"`
	Weight        float64    `json:"weight,omitempty" help:"share of scarce capacity, relative to other apps; 0 is 1"`
	Priority      int        `json:"priority,omitempty" help:"0, the highest, to 3: queries of a lower one get what higher ones leave; a key or a query can only ask for a lower one"`
	MinShare      float64    `json:"min_share,omitempty" help:"the part of a model's capacity that the app gets even where higher priorities want all of it, from 0 to 0.9"`
	Cache         CacheSpec  `json:"cache,omitzero"`
	ColdStart     Duration   `json:"cold_start_micros,omitempty" help:"how long a query may wait for the first replica of a model that is scaled to zero, in microseconds; 0 is the latency objective"`
	Example       string     `json:"example,omitempty" help:"an example of an input, as JSON"`
	RequireKey    bool       `json:"require_key,omitempty" help:"queries must present a key for the app"`
	SLOBetween    Duration   `json:"slo_between_micros,omitempty" help:"of an answer in parts: time from one part to the next, in microseconds; 0 is 10 s"`
	SLOTotal      Duration   `json:"slo_total_micros,omitempty" help:"of an answer in parts: time to its end, in microseconds; 0 is 10 minutes"`
	Route         Route      `json:"route,omitempty" help:"which replica is asked: empty, the one with the shortest wait; prefix, the one that was asked last about an input that begins alike, for engines that cache prompts"`
	ShareStreams  bool       `json:"share_streams,omitempty" help:"equal queries in flight share one answer in parts"`
	DefaultErrors bool       `json:"default_errors,omitempty" help:"clients of the Open Inference Protocol and of OpenAI get an error in place of the default output"`
	Limit         *Limit     `json:"limit,omitempty" help:"limit of all queries together; by default none"`
	Labels        []string   `json:"labels,omitempty" help:"labels to find the app by" flag:"label"`
	Origin        Origin     `json:"origin,omitempty" toml:"-"` // the catalog's to give
}

// CacheSpec is how an app uses the prediction cache.
type CacheSpec struct {
	Off   bool     `json:"off,omitempty" help:"do not answer from the prediction cache" flag:"no-cache"`
	Round float64  `json:"round,omitempty" help:"round numbers to this step in the cache key; 0 does not round"`
	TTL   Duration `json:"ttl_micros,omitempty" help:"how long a cached answer may be used, in microseconds; 0 is until it is evicted"`
}

// Route is how the replica of a query is chosen.
type Route string

// RoutePrefix prefers the replica that has the longest prefix of the input in its cache.
const RoutePrefix Route = "prefix"

// What an app without objectives for answers in parts has.
const (
	DefaultSLOBetween = 10 * time.Second
	DefaultSLOTotal   = 10 * time.Minute
)

// Between is how long the next part of an answer may take.
func (a *App) Between() time.Duration { return cmp.Or(a.SLOBetween.Std(), DefaultSLOBetween) }

// Total is how long an answer in parts may take.
func (a *App) Total() time.Duration {
	return cmp.Or(a.SLOTotal.Std(), max(DefaultSLOTotal, a.SLO.Std()))
}

// MaxStream bounds answers in parts.
const MaxStream = 24 * time.Hour

// MaxSLO bounds latency objectives; a query held longer is a job, not a query.
const MaxSLO = 10 * time.Minute

// MaxWeight bounds the weight of an app.
const MaxWeight = 1000.0

// MaxMinShare bounds what an app gets at least.
const MaxMinShare = 0.9

// Check returns everything that is wrong with the app alone, or nil.
func (a *App) Check() error {
	errs := []error{CheckAppName(a.Name)}
	if err := checkDescription(a.Description); err != nil {
		errs = append(errs, fmt.Errorf("app %q: %w", a.Name, err))
	}
	if err := checkInput(a.InputType, 0, a.Signature); err != nil {
		errs = append(errs, fmt.Errorf("app %q %w", a.Name, err))
	}
	if a.SLO.Std() < 100*time.Microsecond || a.SLO.Std() > MaxSLO {
		errs = append(errs, fmt.Errorf("app %q: latency_slo_micros must be between 100 and %d", a.Name, MaxSLO.Microseconds()))
	}
	if a.ColdStart != 0 && (a.ColdStart < a.SLO || a.ColdStart.Std() > MaxSLO) {
		errs = append(errs, fmt.Errorf("app %q: cold_start must be between its SLO and %v", a.Name, MaxSLO))
	}
	if a.SLOBetween < 0 || a.SLOBetween.Std() > MaxSLO {
		errs = append(errs, fmt.Errorf("app %q: slo_between must be between 0 and %v", a.Name, MaxSLO))
	}
	if a.SLOTotal != 0 && (a.SLOTotal < a.SLO || a.SLOTotal.Std() > MaxStream) {
		errs = append(errs, fmt.Errorf("app %q: slo_total must be between its SLO and %v", a.Name, MaxStream))
	}
	if a.Route != "" && a.Route != RoutePrefix {
		errs = append(errs, fmt.Errorf("app %q: route %q is unknown: use prefix, or leave it out", a.Name, a.Route))
	}
	if r := a.Cache.Round; r < 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		errs = append(errs, fmt.Errorf("app %q: the cache's rounding step must be a positive number", a.Name))
	}
	if a.Cache.Round > 0 && !a.InputType.Numeric() {
		errs = append(errs, fmt.Errorf("app %q: only numbers can be rounded in the cache key", a.Name))
	}
	if a.Cache.TTL < 0 {
		errs = append(errs, fmt.Errorf("app %q: the cache's time to live must not be negative", a.Name))
	}
	if !(a.Weight >= 0 && a.Weight <= MaxWeight) {
		errs = append(errs, fmt.Errorf("app %q: weight must be between 0 and %v", a.Name, MaxWeight))
	}
	if !(a.MinShare >= 0 && a.MinShare <= MaxMinShare) {
		errs = append(errs, fmt.Errorf("app %q: min_share must be between 0 and %v", a.Name, MaxMinShare))
	}
	for _, err := range append(a.checkPolicy(), checkPriority(a.Priority), a.OutputType.check(), a.Limit.check(), a.checkStages()) {
		if err != nil {
			errs = append(errs, fmt.Errorf("app %q: %w", a.Name, err))
		}
	}
	if a.Example != "" && !json.Valid([]byte(a.Example)) {
		errs = append(errs, fmt.Errorf("app %q: the example must be a JSON input", a.Name))
	}
	for i, m := range a.Models {
		if slices.Contains(a.Models[:i], m) {
			errs = append(errs, fmt.Errorf("app %q links model %q twice", a.Name, m))
		}
	}
	return errors.Join(errs...)
}

// checkAsked says what is wrong with what a stage of an app asks, or nil.
func (s *Stage) checkAsked(app string) error {
	switch {
	case s.App == "":
		return CheckModelName(s.Model)
	case s.Model != "":
		return errors.New("it names a model and an app: it can call one of them")
	case s.App == app:
		return errors.New("it calls the app itself")
	}
	return CheckAppName(s.App)
}

// checkStages says what is wrong with the stages, or nil.
func (a *App) checkStages() error {
	if len(a.Stages) == 0 {
		return nil
	}
	errs := []error{a.Stages.Check()}
	if len(a.Models) > 0 || a.Policy.KindName() != PolicySingle {
		errs = append(errs, errors.New("has stages and also linked models or a policy: the stages name the models, and each is called"))
	}
	for _, s := range a.Stages {
		if err := s.checkAsked(a.Name); err != nil {
			errs = append(errs, fmt.Errorf("stage %q: %w", s.Name, err))
		}
		if s.Code != "" || s.Workers != 0 || len(s.CPUs) > 0 || s.PerWorker != 0 || s.MaxQueue != 0 || s.Batch != (StageBatch{}) || s.Idempotent {
			errs = append(errs, fmt.Errorf("stage %q: code, workers, cpus, max_queue, batch and idempotent are for the stages of a model version: here give name, model or app, and after", s.Name))
		}
	}
	return errors.Join(errs...)
}
