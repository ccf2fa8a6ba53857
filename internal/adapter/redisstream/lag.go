package redisstream

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Lag is how many entries of its streams the group has not committed. Where Redis does not know
// how many it has not given out (one that is older than 7.0, or after entries were deleted),
// those of the whole stream count. Any goroutine may ask, until Close.
func (c *Consumer) Lag(ctx context.Context) (records int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, stream := range c.group.Streams {
		n, err := c.lag(ctx, stream)
		if err != nil {
			return 0, fmt.Errorf("ask for the lag in %s: %w", stream, err)
		}
		records += n
	}
	return records, c.consuming.Err()
}

func (c *Consumer) lag(ctx context.Context, stream string) (int64, error) {
	groups, err := c.client.XInfoGroups(ctx, stream).Result()
	if err != nil && !strings.Contains(err.Error(), "no such key") {
		return 0, err
	}
	for _, g := range groups {
		if g.Name == c.group.Name && g.Lag >= 0 && known(g) {
			return g.Lag + g.Pending, nil
		}
	}
	return c.client.XLen(ctx, stream).Result()
}

// known says whether a lag of 0 is one: old servers say nothing of it.
func known(g redis.XInfoGroup) bool { return g.Lag > 0 || g.EntriesRead > 0 }
