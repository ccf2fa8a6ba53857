package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// LoadTraffic is the past of the charts as a management process saved it; nil: none did.
func (s *Store) LoadTraffic(ctx context.Context) (past []byte, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		past, err = s.client.Get(ctx, s.keys.traffic).Bytes()
		if errors.Is(err, redis.Nil) {
			past = nil
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load the past of the charts: %w", err)
	}
	return past, nil
}

// SaveTraffic saves it.
func (s *Store) SaveTraffic(ctx context.Context, past []byte) error {
	err := s.call(ctx, func(ctx context.Context) error { return s.client.Set(ctx, s.keys.traffic, past, 0).Err() })
	if err != nil {
		return fmt.Errorf("save the past of the charts: %w", err)
	}
	return nil
}
