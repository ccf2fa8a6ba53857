package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
)

// tail reads a stream as it grows. It has connections of its own, for it keeps one
// busy; the end of its context closes them, which ends a read at once.
type tail struct {
	client redis.UniversalClient
	stream string
	detach func() bool
}

const (
	tailConnections = 2   // one waits, one is for what the client asks by itself
	tailBatch       = 100 // entries in one answer
)

func (s *Store) tail(ctx context.Context, stream string) *tail {
	client := s.cfg.Connect(tailConnections, redisclient.Repeat)
	return &tail{client, stream, context.AfterFunc(ctx, func() { _ = client.Close() })}
}

func (t *tail) close() {
	if t.detach() {
		_ = t.client.Close()
	}
}

// after returns the entries after id; it waits for one for blockFor.
func (t *tail) after(ctx context.Context, id string) ([]redis.XMessage, error) {
	bounded, cancel := context.WithTimeout(ctx, blockFor+callTimeout)
	defer cancel()
	streams, err := t.client.XRead(bounded, &redis.XReadArgs{Streams: []string{t.stream, id}, Block: blockFor, Count: tailBatch}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("wait for news from redis: %w", err)
	}
	return streams[0].Messages, nil
}
