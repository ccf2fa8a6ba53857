package cluster

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
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

// ScaleGateways sets the number of gateways.
func ScaleGateways(ctx context.Context, cfg *config.Config, job string, count int, reason string, log *slog.Logger) error {
	fleet, err := newParts(cfg, log).openFleet(nil, nil)
	if err != nil {
		return err
	}
	return fleet.ScaleService(ctx, job, "gateway", count, reason)
}
