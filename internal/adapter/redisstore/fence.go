package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Fence is the highest fencing token that has written; 0 before the first.
func (s *Store) Fence(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fence, err := s.client.Get(ctx, s.keys.fence).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("read the fencing token: %w", err)
	}
	return fence, nil
}
