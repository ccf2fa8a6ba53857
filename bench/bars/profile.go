package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// profile drives a target once more, for no figure, and writes CPU profiles of
// those of its processes that have an ops port.
func (b *bench) profile(ctx context.Context, t *target) error {
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return err
	}
	var group errgroup.Group
	for _, c := range t.children {
		if c.Ops == "" {
			continue
		}
		group.Go(func() error {
			profile, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.Ops, b.Seconds))
			if err != nil {
				return fmt.Errorf("profile of the %s: %w", c.name, err)
			}
			file := filepath.Join(b.profiles, c.name+".pprof")
			b.say("  profile: go tool pprof %s", file)
			return os.WriteFile(file, profile, 0o644)
		})
	}
	_, driven := b.wrk.run(ctx, t.url, nil, many, b.Seconds)
	if err := group.Wait(); err != nil {
		return err
	}
	return driven
}
