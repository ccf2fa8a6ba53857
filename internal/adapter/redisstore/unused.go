package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// UnusedBundles takes the bundles that no version uses, and returns since when each of them
// has been one of these, by the clock of Redis. Others are forgotten.
func (s *Store) UnusedBundles(ctx context.Context, digests []string) (map[string]time.Time, error) {
	args := make([]any, len(digests))
	for i, digest := range digests {
		args[i] = digest
	}
	result, err := s.run(ctx, s.scripts.unused, []string{s.keys.unused}, args...)
	if err != nil {
		return nil, fmt.Errorf("note bundles that are not used: %w", err)
	}
	since := map[string]time.Time{}
	pairs, _ := result.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		digest, _ := pairs[i].(string)
		text, _ := pairs[i+1].(string)
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("since when bundle %s is not used: %w", digest, err)
		}
		since[digest] = time.Unix(seconds, 0)
	}
	return since, nil
}
