package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Ensemble describes an app that asks several models, and how it decides.
type Ensemble struct {
	Name          string
	Description   string
	InputType     string
	Models        []string
	Policy        string // its kind, or the whole of it as JSON; empty: the default one
	SLO           uint64 // the time limit, in microseconds
	DefaultOutput string
	OutputType    string
}

// check says everything that is wrong with the ensemble by itself, or nil. Whether there
// are such models is for the catalog to say.
func (e *Ensemble) check() error {
	errs := []error{serving.CheckAppName(e.Name)}
	if _, err := serving.ParseInputType(e.InputType); err != nil {
		errs = append(errs, err)
	}
	if len(e.Models) > mostNames {
		errs = append(errs, fmt.Errorf("it names %d models, and may name %d", len(e.Models), mostNames))
	}
	for _, name := range e.Models[:min(len(e.Models), mostNames)] {
		errs = append(errs, serving.CheckModelName(name))
	}
	if e.SLO == 0 {
		errs = append(errs, errors.New("it needs latency_slo_micros, the time limit"))
	}
	if _, err := e.policy(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// policy is the policy as JSON.
func (e *Ensemble) policy() (json.RawMessage, error) {
	text := strings.TrimSpace(e.Policy)
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	if !strings.HasPrefix(text, "{") {
		kind, err := json.Marshal(map[string]string{"kind": text})
		return kind, err
	}
	if _, err := serving.ParsePolicy([]byte(text)); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return json.RawMessage(text), nil
}

// app names the app that the ensemble is.
func (e *Ensemble) app() string { return e.Name }

// asks are the models that there must be.
func (e *Ensemble) asks() []string { return e.Models }

// members are what the app gets, as the management API names them. What the ensemble does
// not name stays as it is.
func (e *Ensemble) members(map[string]any) (map[string]any, error) {
	policy, err := e.policy()
	if err != nil {
		return nil, rejected(Invalid, "%v", err)
	}
	models := e.Models
	if models == nil {
		models = []string{}
	}
	members := map[string]any{
		"name": e.Name, "input_type": e.InputType, "models": models, "policy": policy,
		"latency_slo_micros": e.SLO, "default_output": e.DefaultOutput,
	}
	if e.Description != "" {
		members["description"] = e.Description
	}
	if e.OutputType != "" {
		members["output_type"] = e.OutputType
	}
	return members, nil
}

// content is a checksum of the whole.
func (e *Ensemble) content() string { return contentOf(e) }

// contentOf is a checksum of what an update says in texts and numbers.
func contentOf(what any) string {
	text, _ := json.Marshal(what) // they always are JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
