package redisstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
)

// Consumer is a member of a consumer group. One goroutine uses it.
type Consumer struct {
	group   Group
	cluster bool
	connect func() redis.UniversalClient
	client  redis.UniversalClient
	waiting redis.UniversalClient // its connection is kept busy; nil: none
	scripts scripts
	outage  outage

	joined bool      // the group exists
	search time.Time // when to search again for entries of silent members
	first  int       // the stream that is read first, next time
	leases leases

	polled      map[string][]string // ids of the records that wait for Commit, of each stream
	stopKeeping func()              // of these
	closed      bool
}

var (
	errClosed      = errors.New("the consumer is closed")
	errUncommitted = errors.New("the records of the last Poll wait for Commit")
	errNotPolled   = errors.New("there are no records to commit: Poll comes first")
)

const (
	mostRecords = 1000    // in a batch; scripts of Redis cannot pass on much more
	mostBytes   = 4 << 20 // after which a batch is large enough; 64 entries more may be in it
	tick        = 250 * time.Millisecond
)

// Join makes a member of a group. It dials when it is first polled, and keeps trying. A
// group that is new begins where its streams begin.
func Join(broker Broker, group Group) (*Consumer, error) {
	if err := errors.Join(broker.check(), group.check(broker.Cluster)); err != nil {
		return nil, err
	}
	group = group.withDefaults()
	return &Consumer{
		group:   group,
		cluster: broker.Cluster,
		connect: func() redis.UniversalClient { return broker.connect(2, repeat) },
		client:  broker.connect(2, repeat),
		scripts: newScripts(),
		outage:  outage{log: broker.Log},
		leases:  newLeases(group),
	}, nil
}

// Poll returns the next records, at least one and at most most or a thousand. While Redis
// is away it keeps trying and says so in the log; its error is ctx's, or that of a wrong use.
func (c *Consumer) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	switch {
	case c.closed:
		return nil, errClosed
	case c.polled != nil:
		return nil, errUncommitted
	}
	for ctx.Err() == nil {
		records, last, err := c.next(ctx, min(max(most, 1), mostRecords))
		if err == nil && len(records) > 0 {
			c.outage.over()
			c.stopKeeping = c.keep()
			return records, nil
		}
		if err == nil {
			err = c.wait(ctx, last)
		}
		c.note(ctx, err)
	}
	return nil, context.Cause(ctx)
}

// next is what there is now. Without records it says up to where the group was given each
// stream that is ours to read.
func (c *Consumer) next(ctx context.Context, most int) (records []serving.StreamRecord, last map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.join(ctx); err != nil {
		return nil, nil, err
	}
	streams, err := c.ours(ctx)
	if err != nil || len(streams) == 0 {
		return nil, nil, err
	}
	if now := time.Now(); !c.group.Ordered && !now.Before(c.search) {
		if records, _, err = c.read(ctx, streams, most, "silent"); err != nil || len(records) > 0 {
			return records, nil, err
		}
		c.search = now.Add(c.tick())
	}
	return c.read(ctx, streams, most, "new")
}

// tick is how often to look for what no entry tells.
func (c *Consumer) tick() time.Duration { return min(tick, c.group.Takeover/4) }

// join makes the group, and the streams that do not exist.
func (c *Consumer) join(ctx context.Context) error {
	if c.joined {
		return nil
	}
	for _, stream := range c.group.Streams {
		err := c.client.XGroupCreateMkStream(ctx, stream, c.group.Name, "0").Err()
		if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
			return fmt.Errorf("make the group %s of %s: %w", c.group.Name, stream, err)
		}
	}
	c.joined = true
	return nil
}

// ours are the streams to read, another one first each time.
func (c *Consumer) ours(ctx context.Context) ([]string, error) {
	streams := c.group.Streams
	if c.group.Ordered {
		if err := c.leases.hold(ctx, c.client, c.scripts); err != nil {
			return nil, err
		}
		streams = c.leases.held
	}
	if len(streams) == 0 {
		return nil, nil
	}
	c.first = (c.first + 1) % len(streams)
	return append(streams[c.first:len(streams):len(streams)], streams[:c.first]...), nil
}

// read runs the script, and takes what it gives as polled.
func (c *Consumer) read(ctx context.Context, streams []string, most int, how string) (records []serving.StreamRecord, last map[string]string, err error) {
	keys, token := streams, ""
	if c.group.Ordered {
		keys, token = append(keys, c.leases.of(streams)...), c.leases.token
	}
	args := []any{c.group.Name, c.group.Member, most, mostBytes, how, token, c.group.Takeover.Milliseconds()}
	answer, err := c.scripts.poll.Run(ctx, c.client, keys, args...).Result()
	if err != nil {
		return nil, nil, fmt.Errorf("read: %w", err)
	}
	records, last, err = parsePoll(streams, answer)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range records {
		if c.polled == nil {
			c.polled = map[string][]string{}
		}
		c.polled[record.Stream] = append(c.polled[record.Stream], record.Place)
	}
	return records, last, nil
}

// wait waits for an entry that is newer, for a tick.
func (c *Consumer) wait(ctx context.Context, last map[string]string) error {
	if len(last) == 0 {
		pause(ctx, c.tick())
		return nil
	}
	args := &redis.XReadArgs{Block: c.tick(), Count: 1}
	var after []string
	for stream, id := range last {
		if id == "" {
			c.leases.renew = time.Time{} // it is not ours any more
			return nil
		}
		args.Streams, after = append(args.Streams, stream), append(after, id)
	}
	args.Streams = append(args.Streams, after...)
	if c.waiting == nil {
		c.waiting = c.connect()
	}
	client := c.waiting
	// The end of ctx closes its connection, which ends the wait at once.
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	bounded, cancel := context.WithTimeout(ctx, c.tick()+ioTimeout)
	defer cancel()
	err := client.XRead(bounded, args).Err()
	if !stop() {
		c.waiting = nil
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("wait for records: %w", err)
	}
	return nil
}

// note says how it stands with Redis, and waits before the next try if it stands badly.
func (c *Consumer) note(ctx context.Context, err error) {
	switch {
	case err == nil:
		c.outage.over()
	case !ended(ctx):
		c.outage.say(err)
		if strings.Contains(err.Error(), "NOGROUP") {
			c.joined = false // it was deleted, or the stream
		}
		pause(ctx, retryAfter())
	}
}

// Close leaves the group; records that were polled and not committed go to others at once
// if Redis is there, else after Takeover.
func (c *Consumer) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.forget()
	if c.joined {
		c.leave()
	}
	_ = c.client.Close() // its connections end in any case
	if c.waiting != nil {
		_ = c.waiting.Close()
	}
	return nil
}

// leave tells Redis, so that others need not wait.
func (c *Consumer) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	keys, token := append([]string{c.leases.members}, c.group.Streams...), ""
	if c.group.Ordered {
		keys, token = append(keys, c.leases.of(c.group.Streams)...), c.leases.token
	}
	if err := c.scripts.leave.Run(ctx, c.client, keys, c.group.Name, c.group.Member, token).Err(); err != nil {
		c.outage.say(fmt.Errorf("leave the group, others have its records in %v: %w", c.group.Takeover, err))
	}
}

// newToken is a random name.
func newToken() string { return rand.Text() }
