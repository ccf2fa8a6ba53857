package redisstore

import (
	"context"
	"fmt"
	"math"
	"time"
)

// leaseEpoch is when block numbers begin to count, in Unix time. They are seconds
// at the least (see lease.lua), and stay below 2^30 until 2060.
const leaseEpoch = 1767225600 // 2026-01-01

// LeaseQueryIDs returns the number of a block of query ids that was never leased before
// and never will be again: across restarts, and when Redis is flushed or goes back to
// an old copy.
func (s *Store) LeaseQueryIDs(ctx context.Context) (block uint32, err error) {
	result, err := s.run(ctx, s.scripts.lease, []string{s.keys.lease}, leaseEpoch)
	if err != nil {
		return 0, fmt.Errorf("lease query ids: %w", err)
	}
	n := result.(int64)
	if n < 1 || n > math.MaxUint32 {
		return 0, fmt.Errorf("lease query ids: block %d is out of range; is the clock of Redis right? It should be about %v", n, time.Now().UTC())
	}
	return uint32(n), nil
}
