package serving

import (
	"fmt"

	"github.com/topsail-serving/topsail/internal/schema"
)

// ParsePolicy reads a policy from a JSON object, strictly: names that it does not know
// and values of other types are errors. It does not check what App.Check checks.
func ParsePolicy(text []byte) (PolicySpec, error) {
	var p PolicySpec
	if err := schema.ReadJSON(text, &p); err != nil {
		return PolicySpec{}, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}
