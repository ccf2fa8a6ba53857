package models

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// PolicyChange sets parameters of an app's policy. The others stay as they are, unless the policy
// becomes one of another kind.
type PolicyChange struct {
	App        string
	Parameters string // a JSON object, with the members of a policy; null: the default
}

// app names the app.
func (p *PolicyChange) app() string { return p.App }

// asks are no models: the API looks for those that a policy names.
func (p *PolicyChange) asks() []string { return nil }

// check says everything that is wrong with the change by itself, or nil.
func (p *PolicyChange) check() error {
	_, err := p.parameters()
	return errors.Join(serving.CheckAppName(p.App), err)
}

// parameters are those that are named.
func (p *PolicyChange) parameters() (map[string]any, error) {
	tree, err := schema.ParseJSON([]byte(p.Parameters))
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	named, ok := tree.(map[string]any)
	if !ok || len(named) == 0 {
		return nil, errors.New(`parameters must be a JSON object, such as {"within_micros": 50000}`)
	}
	d := schema.Decoder{Partial: true}
	if problems := d.Decode("parameters", tree, new(serving.PolicySpec)); len(problems) > 0 {
		return nil, problems[0]
	}
	return named, nil
}

// members are what changes of the app.
func (p *PolicyChange) members(before map[string]any) (map[string]any, error) {
	if before == nil {
		return nil, errMissing{"app", p.App}
	}
	named, err := p.parameters()
	if err != nil {
		return nil, rejected(Invalid, "%v", err)
	}
	policy, _ := before["policy"].(map[string]any)
	if kind, is := named["kind"]; is && kind != policy["kind"] {
		policy = nil // the parameters of another kind mean nothing to it
	}
	return map[string]any{"policy": schema.Merge(policy, named)}, nil
}

// content is a checksum of the whole.
func (p *PolicyChange) content() string {
	var named json.RawMessage
	if all, err := p.parameters(); err == nil {
		named, _ = json.Marshal(plain(all)) // it came out of JSON
	}
	return contentOf([]string{"policy", p.App, string(named)})
}
