package redisstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
)

// knownFor is how long Redis knows the last commit of a member, in case it is repeated.
const knownFor = time.Hour

// Commit adds the results and acknowledges the polled records, in one script. While Redis
// is away it tries for as long as the group's Takeover.
//
// With a TooLargeError nothing was done, and the records wait for another Commit. After
// every other error they are forgotten, and those that were not committed are redelivered:
// serving.ErrRecordsLost is the one where that is known, and to be expected.
func (c *Consumer) Commit(ctx context.Context, results []serving.StreamMessage) error {
	switch {
	case c.closed:
		return errClosed
	case c.polled == nil:
		return errNotPolled
	}
	if err := checkSizes(results, c.group.MaxMessageBytes); err != nil {
		return err
	}
	err := c.commit(ctx, results)
	c.forget()
	if err != nil {
		c.leases.renew = time.Time{} // it may have been a lease
	}
	return err
}

// commit does it once, however often it tries.
func (c *Consumer) commit(ctx context.Context, results []serving.StreamMessage) error {
	keys, args := c.commitment(results)
	if c.cluster {
		if err := sameTag(keys); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.group.Takeover)
	defer cancel()
	answer, err := c.runCommit(ctx, keys, args)
	switch {
	case err != nil:
		return err
	case answer == lost:
		return serving.ErrRecordsLost
	case answer != done:
		return fmt.Errorf("commit: %w: %q", errAnswer, answer)
	}
	return nil
}

// runCommit runs the script until there is an answer or ctx ends.
func (c *Consumer) runCommit(ctx context.Context, keys []string, args []any) (answer string, err error) {
	for {
		answer, err = c.scripts.commit.Run(ctx, c.client, keys, args...).Text()
		if err == nil || refused(err) {
			break
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("commit, which may be done or not: %w", err)
		}
		c.outage.say(err)
		pause(ctx, retryAfter())
	}
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	c.outage.over()
	return answer, nil
}

// refused says that Redis did not do it, and why it will not do it either the next time.
func refused(err error) bool {
	if _, answered := errors.AsType[redis.Error](err); !answered {
		return false
	}
	for _, passes := range []string{"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN"} {
		if strings.HasPrefix(err.Error(), passes) {
			return false
		}
	}
	return true
}

// commitment is what the script is given.
func (c *Consumer) commitment(results []serving.StreamMessage) (keys []string, args []any) {
	streams := slices.Sorted(maps.Keys(c.polled))
	token := ""
	keys = append([]string{key(c.group.Streams[0], c.group.Name, "commit:"+c.group.Member)}, streams...)
	if c.group.Ordered {
		token = c.leases.token
		keys = append(keys, c.leases.of(streams)...)
	}
	deleting := 0
	if c.group.Delete {
		deleting = 1
	}
	args = []any{c.group.Name, c.group.Member, token, c.group.Takeover.Milliseconds(), newToken(), knownFor.Milliseconds(), len(streams), c.group.MaxLen, deleting}
	for _, stream := range streams {
		args = append(args, len(c.polled[stream]))
		for _, id := range c.polled[stream] {
			args = append(args, id)
		}
	}
	index := map[string]int{}
	for _, result := range results {
		if index[result.Stream] == 0 {
			keys = append(keys, result.Stream)
			index[result.Stream] = len(index) + 1
		}
		list := fields(result)
		args = append(append(args, index[result.Stream], len(list)), list...)
	}
	return keys, args
}
