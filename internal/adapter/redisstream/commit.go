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

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// knownFor is how long Redis knows the last commit of a member, in case it is repeated.
const knownFor = time.Hour

// Commit adds the messages of results and acknowledges their records, in one script; those beyond the first
// thousand have to wait. While Redis is unavailable it tries for as long as the group's Takeover. It is not known then whether
// the records are committed, and they are lost.
func (c *Consumer) Commit(ctx context.Context, results []serving.StreamResult) (waiting []int, err error) {
	switch {
	case c.closed.Load():
		return nil, errClosed
	case len(results) == 0:
		return nil, errNothing
	}
	for i, r := range results {
		err := checkSizes(r.Messages, c.group.MaxMessageBytes)
		if large, ok := errors.AsType[*TooLargeError](err); ok {
			large.Message = i
		}
		if err != nil {
			return nil, err
		}
	}
	for i := mostRecords; i < len(results); i++ {
		waiting = append(waiting, i)
	}
	results = results[:min(len(results), mostRecords)]
	c.alone.Lock()
	defer c.alone.Unlock()
	return waiting, c.commit(ctx, results)
}

// commit does it once, however often it tries.
func (c *Consumer) commit(ctx context.Context, results []serving.StreamResult) error {
	ids := map[string][]string{}
	for _, r := range results {
		switch record := r.Record; {
		case record.IsLost():
			return serving.ErrRecordsLost
		case !c.flights.has(record.Stream, record.Place):
			return fmt.Errorf("%s %w", record.Position(), errNotInFlight)
		default:
			ids[record.Stream] = append(ids[record.Stream], record.Place)
		}
	}
	streams := slices.Sorted(maps.Keys(ids))
	keys, args := c.commitment(streams, ids, results)
	if c.cluster {
		if err := sameTag(keys); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.group.Takeover)
	defer cancel()
	answer, err := c.runCommit(ctx, keys, args)
	if err == nil && answer == done {
		for stream, some := range ids {
			c.flights.done(stream, some)
		}
		return nil
	}
	c.renew.Store(true) // it may have been a lease
	switch {
	case err != nil && strings.Contains(err.Error(), "NOGROUP"):
		c.flights.loseAll() // with the group
		return err
	case refused(err):
		return err
	case err != nil:
		for stream := range ids {
			c.flights.lose(stream) // all, for they come again in their order
		}
		return err
	}
	if err := c.lose(streams, answer); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return serving.ErrRecordsLost
}

var errNotInFlight = errors.New("is not in flight: it was committed, or not polled")

// lose lets go of what a script says is lost: lists of the index of a stream and of ids.
func (c *Consumer) lose(streams []string, answer any) error {
	lists, ok := answer.([]any)
	if !ok {
		return errAnswer
	}
	for _, one := range lists {
		list, ok := one.([]any)
		if !ok || len(list) == 0 {
			return errAnswer
		}
		i, ok := list[0].(int64)
		if !ok || i < 1 || int(i) > len(streams) {
			return errAnswer
		}
		var ids []string
		for _, id := range list[1:] {
			text, ok := id.(string)
			if !ok {
				return errAnswer
			}
			ids = append(ids, text)
		}
		c.flights.lose(streams[i-1], ids...)
	}
	return nil
}

// runCommit runs the script until there is an answer or ctx ends.
func (c *Consumer) runCommit(ctx context.Context, keys []string, args []any) (answer any, err error) {
	for {
		answer, err = c.scripts.commit.Run(ctx, c.client, keys, args...).Result()
		if err == nil || refused(err) {
			break
		}
		c.flights.doubt() // Redis may come back with less than it knew
		if ctx.Err() != nil {
			return nil, fmt.Errorf("commit, which may be done or not: %w", err)
		}
		c.consuming.Note(err)
		retry.Sleep(ctx, retryAfter())
	}
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	c.consuming.Note(nil)
	return answer, nil
}

// refused says that Redis did not do it, and why it will not do it either the next time.
func refused(err error) bool {
	if _, answered := errors.AsType[redis.Error](err); !answered {
		return false
	}
	text := err.Error()
	for _, passes := range []string{"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN"} {
		if strings.HasPrefix(strings.TrimPrefix(text, "commit: "), passes) {
			return false
		}
	}
	return true
}

// commitment is what the script is given.
func (c *Consumer) commitment(streams []string, ids map[string][]string, results []serving.StreamResult) (keys []string, args []any) {
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
		args = append(args, c.upTo(stream, ids[stream])...)
	}
	index := map[string]int{}
	for _, result := range results {
		for _, m := range result.Messages {
			if index[m.Stream] == 0 {
				keys = append(keys, m.Stream)
				index[m.Stream] = len(index) + 1
			}
			list := fields(m)
			args = append(append(args, index[m.Stream], len(list)), list...)
		}
	}
	return keys, args
}

// upTo are entries of a stream that are done, as the script is given them. With leases those that are in flight
// before the last of them are there, too.
func (c *Consumer) upTo(stream string, ids []string) (args []any) {
	ids = slices.SortedFunc(slices.Values(ids), func(a, b string) int { return numberOf(a).compare(numberOf(b)) })
	if !c.group.Ordered {
		args = []any{len(ids)}
		for _, id := range ids {
			args = append(args, id, 1)
		}
		return args
	}
	isDone, last := map[string]bool{}, numberOf(ids[len(ids)-1])
	for _, id := range ids {
		isDone[id] = true
	}
	args = []any{0}
	for _, id := range c.flights.ids(stream) {
		if numberOf(id).compare(last) > 0 {
			break
		}
		flag := 0
		if isDone[id] {
			flag = 1
		}
		args = append(args, id, flag)
	}
	args[0] = (len(args) - 1) / 2
	return args
}
