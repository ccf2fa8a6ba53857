package cluster

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// longestSLO is that of the apps that use a model; 0 when none does.
func longestSLO(cat *serving.Catalog, model string) time.Duration {
	longest := time.Duration(0)
	for _, a := range cat.Apps {
		if slices.Contains(a.Asked(), model) {
			longest = max(longest, a.SLO.Std())
		}
	}
	return longest
}
