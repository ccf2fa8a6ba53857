package main

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// store opens the state of the cluster, as an API does.
func (b *bench) store(ctx context.Context) (*redisstore.Store, error) {
	return redisstore.Open(ctx, redisstore.Config{Server: redisclient.Server{Addrs: []string{b.Redis.Addr}}, Log: slog.New(slog.DiscardHandler)})
}

// decisions are those about a version since a time, the oldest first.
func (b *bench) decisions(ctx context.Context, id serving.ModelID, since time.Time) ([]serving.Decision, error) {
	s, err := b.store(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	list, err := s.Decisions(ctx, 200, id)
	var found []serving.Decision
	for _, d := range slices.Backward(list) {
		if d.At.After(since) && d.Outcome == "applied" {
			found = append(found, d)
		}
	}
	return found, err
}

// count is how many replicas a version's job asks for; 0 without a job.
func (b *bench) count(job string) int {
	found, _, err := b.Jobs.Jobs().Info(job, nil)
	if err != nil || *found.Stop {
		return 0
	}
	return *found.TaskGroups[0].Count
}

// until waits for a condition.
func until(ctx context.Context, within time.Duration, what string, good func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, &late{what, within})
	defer cancel()
	for !good() {
		if !retry.Sleep(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

type late struct {
	what   string
	within time.Duration
}

func (l *late) Error() string { return l.what + " did not come within " + l.within.String() }
