package config

import (
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// ParsePolicy reads a policy alone, written as in [app.policy]. It does not check what
// App.Check checks.
func ParsePolicy(text []byte) (serving.PolicySpec, error) {
	var table map[string]any
	if err := toml.Unmarshal(text, &table); err != nil {
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := d.Position()
			return serving.PolicySpec{}, fmt.Errorf("policy:%d:%d: this is not TOML:\n%s", line, column, d.String())
		}
		return serving.PolicySpec{}, fmt.Errorf("policy: %w", err)
	}
	var p serving.PolicySpec
	d := schema.Decoder{Syntax: schema.TOML}
	if problems := d.Decode("", table, &p); len(problems) > 0 {
		return serving.PolicySpec{}, fmt.Errorf("policy: %w", problems[0])
	}
	return p, nil
}
