package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// wakeMemory is how old a wake may be when a scheduler begins to listen: one that takes
// over from a scheduler that died is to get those sent meanwhile.
const wakeMemory = 5 * time.Second

// Wake tells schedulers that a version has queries and no replica.
func (s *Store) Wake(ctx context.Context, id serving.ModelID) error {
	err := s.call(ctx, func(ctx context.Context) error {
		return s.client.XAdd(ctx, &redis.XAddArgs{
			Stream: s.keys.wakes, MaxLen: keptWakes, Approx: true,
			Values: []any{"model", id.Model, "version", id.Version},
		}).Err()
	})
	if err != nil {
		return fmt.Errorf("wake %v: %w", id, err)
	}
	return nil
}

// Wakes calls fn with the versions that are to wake, from the last few seconds and
// from now on, until ctx ends; it returns why ctx ended. It calls fn from the
// caller's goroutine, and for one version as often as it is asked to. It retries
// while Redis is unavailable.
func (s *Store) Wakes(ctx context.Context, fn func(serving.ModelID)) error {
	wakes := s.tail(ctx, s.keys.wakes)
	defer wakes.close()
	last := ""
	for ctx.Err() == nil {
		var entries []redis.XMessage
		var err error
		if last == "" {
			last, err = s.wakesSince(ctx)
		} else {
			entries, err = wakes.after(ctx, last)
		}
		if err != nil {
			retry.Sleep(ctx, retryAfter())
		}
		for _, entry := range entries {
			model, _ := entry.Values["model"].(string)
			version, _ := entry.Values["version"].(string)
			fn(serving.ModelID{Model: model, Version: version})
			last = entry.ID
		}
	}
	return context.Cause(ctx)
}

// wakesSince is the id of the entry to begin after, by the clock of Redis.
func (s *Store) wakesSince(ctx context.Context) (id string, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		now, err := s.client.Time(ctx).Result()
		if err == nil {
			id = strconv.FormatInt(now.Add(-wakeMemory).UnixMilli(), 10) + "-0"
		}
		return err
	})
	return id, err
}
