package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"topsail/cmd/topsail/config"
	"topsail/internal/redisstore"
	"topsail/jobs"
	"topsail/serving"
)

// registered finds a version in the store, and the longest SLO of the apps that use
// it.
func registered(ctx context.Context, cfg *config.Config, id serving.ModelID, log *slog.Logger) (*serving.Version, time.Duration, error) {
	cat, err := operate(ctx, cfg, log, func(_ context.Context, store *redisstore.Store) (*serving.Catalog, error) {
		return store.Catalog(), nil
	})
	if err != nil {
		return nil, 0, err
	}
	v := cat.Version(id)
	if v == nil {
		return nil, 0, fmt.Errorf("model version %v is not registered; `topsail apply` registers what is in the configuration file", id)
	}
	return v, longestSLO(cat, id.Model), nil
}

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

// RenderJob is the Nomad job of a version as HCL, with as many replicas as it is
// registered with.
func RenderJob(ctx context.Context, cfg *config.Config, id serving.ModelID, log *slog.Logger) (string, error) {
	v, slo, err := registered(ctx, cfg, id, log)
	if err != nil {
		return "", err
	}
	settings, err := newParts(cfg, log).jobSettings()
	if err != nil {
		return "", err
	}
	return jobs.Render(jobs.Spec{Version: v, Count: v.Replicas, SLO: slo, Settings: settings})
}

// PlanJob says what Nomad would do with the job of a version.
func PlanJob(ctx context.Context, cfg *config.Config, id serving.ModelID, log *slog.Logger) (string, error) {
	v, slo, err := registered(ctx, cfg, id, log)
	if err != nil {
		return "", err
	}
	fleet, err := newParts(cfg, log).openFleet(nil, nil)
	if err != nil {
		return "", err
	}
	return fleet.Plan(ctx, v, slo)
}

// ScaleGateways sets the number of gateways.
func ScaleGateways(ctx context.Context, cfg *config.Config, job string, count int, reason string, log *slog.Logger) error {
	fleet, err := newParts(cfg, log).openFleet(nil, nil)
	if err != nil {
		return err
	}
	return fleet.ScaleService(ctx, job, "gateway", count, reason)
}
