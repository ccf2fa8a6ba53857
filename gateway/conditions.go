package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Conditions are what is not as it should be, though the gateway answers: nil, or an error of a
// line for each.
func (g *Gateway) Conditions() error {
	var errs []error
	failed := g.FailedOver()
	for _, id := range slices.SortedFunc(maps.Keys(failed), func(a, b serving.ModelID) int { return cmp.Compare(a.String(), b.String()) }) {
		if failed[id] {
			errs = append(errs, fmt.Errorf("%v has lost all its replicas; the version before it answers", id))
		}
	}
	return errors.Join(errs...)
}
