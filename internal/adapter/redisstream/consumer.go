package redisstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// Consumer is a member of a consumer group. One goroutine polls while another one commits.
type Consumer struct {
	group     Group
	cluster   bool
	connect   func() redis.UniversalClient
	client    redis.UniversalClient
	once      redis.UniversalClient // repeats nothing by itself, for Poll: what is given without an answer is pending then
	waiting   redis.UniversalClient // its connection is kept busy; nil: none
	scripts   scripts
	consuming *condition.Condition

	// Of the polling goroutine.
	joined bool      // the group exists
	search time.Time // when to search again for entries of silent members
	review time.Time // when to look again at all that is pending, with leases
	first  int       // the stream that is read first, next time
	leases leases

	alone   sync.Mutex // of scripts that look at what is in flight, which is not to change meanwhile
	flights *flights
	keeper  keeper
	renew   atomic.Bool // the leases may be others'
	closed  atomic.Bool
}

var (
	errClosed  = errors.New("the consumer is closed")
	errNothing = errors.New("there are no records to commit")
)

const (
	mostRecords = 1000    // in a batch; scripts of Redis cannot pass on much more
	mostBytes   = 4 << 20 // after which a batch is large enough; 64 entries more may be in it
	tick        = 250 * time.Millisecond
	repeatLog   = 30 * time.Second // between lines of the log while Redis is unavailable
)

// Join makes a member of a group. It dials when it is first polled, and keeps trying. A
// group that is new begins where its streams begin.
func Join(broker Broker, group Group) (*Consumer, error) {
	if err := errors.Join(broker.Check(), group.check(broker.Cluster)); err != nil {
		return nil, err
	}
	group = group.withDefaults()
	return &Consumer{
		group:   group,
		cluster: broker.Cluster,
		connect: func() redis.UniversalClient { return broker.Connect(1, redisclient.Repeat) },
		client:  broker.Connect(3, redisclient.Repeat),
		once:    broker.Connect(1, redisclient.DoNotRepeat),
		flights: newFlights(),
		scripts: newScripts(),
		consuming: &condition.Condition{
			Log: broker.Log, Begins: "cannot consume from redis; retrying", Ends: "consuming from redis again", Every: repeatLog,
		},
		leases: newLeases(group),
	}, nil
}

// Poll returns the next records, at least one and at most most or a thousand. While Redis
// is unavailable it keeps trying and says so in the log; its error is ctx's, or that of a wrong use.
func (c *Consumer) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	if c.closed.Load() {
		return nil, errClosed
	}
	for ctx.Err() == nil {
		records, last, err := c.next(ctx, min(max(most, 1), mostRecords))
		if err == nil && len(records) > 0 {
			c.consuming.Note(nil)
			c.keeper.start(c.group.Takeover/4, c.keep)
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
	if records, err = c.pending(ctx, streams, most); err != nil || len(records) > 0 {
		return records, nil, err
	}
	if now := time.Now(); !c.group.Ordered && !now.Before(c.search) {
		if records, err = c.silent(ctx, streams, most); err != nil || len(records) > 0 {
			return records, nil, err
		}
		c.search = now.Add(c.tick())
	}
	answer, err := c.read(ctx, streams, most, "new")
	if err != nil {
		return nil, nil, err
	}
	records, _ = c.flights.add(answer.records, most)
	last = map[string]string{}
	for i, id := range answer.last {
		last[streams[i]] = id
	}
	return records, last, nil
}

// pending is what is pending for the member and not in flight, where something may be.
func (c *Consumer) pending(ctx context.Context, streams []string, most int) ([]serving.StreamRecord, error) {
	for ctx.Err() == nil {
		if _, some := c.flights.behind(streams); !some {
			return nil, nil
		}
		records, err := c.pendingOnce(ctx, streams, most)
		if err != nil || len(records) > 0 {
			return records, err
		}
		if c.group.Ordered && c.leases.renew.IsZero() {
			return nil, nil // some of them are not ours any more
		}
	}
	return nil, context.Cause(ctx)
}

func (c *Consumer) pendingOnce(ctx context.Context, streams []string, most int) ([]serving.StreamRecord, error) {
	c.alone.Lock()
	defer c.alone.Unlock()
	answer, err := c.read(ctx, streams, mostRecords, "pending") // what is in flight is among them
	if err != nil {
		return nil, err
	}
	records, all := c.flights.add(answer.records, most)
	for i, behind := range answer.behind {
		if behind == gone {
			continue
		}
		if !all { // the others come when there is room
			behind = fromStart
		}
		c.flights.seen(streams[i], behind)
	}
	return records, nil
}

// silent is what was pending for members that are silent.
func (c *Consumer) silent(ctx context.Context, streams []string, most int) ([]serving.StreamRecord, error) {
	c.alone.Lock()
	defer c.alone.Unlock()
	answer, err := c.read(ctx, streams, most, "silent")
	records, _ := c.flights.add(answer.records, most)
	return records, err
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
		if err := c.hold(ctx); err != nil {
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

// hold holds the leases of the member's streams. What is in flight of others is lost.
func (c *Consumer) hold(ctx context.Context) error {
	if c.renew.Swap(false) {
		c.leases.renew = time.Time{}
	}
	before := c.leases.held
	if err := c.leases.hold(ctx, c.client, c.scripts); err != nil {
		return err
	}
	for _, stream := range c.leases.lost(before) {
		c.flights.lose(stream)
	}
	if now := time.Now(); !now.Before(c.review) { // Redis may have come back unnoticed, and without a commit
		c.flights.doubt()
		c.review = now.Add(c.group.Takeover)
	}
	return nil
}

// read runs the script.
func (c *Consumer) read(ctx context.Context, streams []string, most int, how string) (answer polled, err error) {
	keys, token := streams, ""
	if c.group.Ordered {
		keys, token = append(slices.Clip(keys), c.leases.of(streams)...), c.leases.token
	}
	args := []any{c.group.Name, c.group.Member, most, mostBytes, how, token, c.group.Takeover.Milliseconds()}
	behind, _ := c.flights.behind(streams)
	for _, id := range behind {
		args = append(args, id)
	}
	text, err := c.scripts.poll.Run(ctx, c.once, keys, args...).Result()
	if err == nil {
		answer, err = parsePoll(streams, text)
	}
	if err != nil {
		return polled{}, fmt.Errorf("read: %w", err)
	}
	for i, behind := range answer.behind {
		if behind == gone {
			c.leases.renew = time.Time{}
			c.flights.lose(streams[i])
		}
	}
	return answer, nil
}

// wait waits for an entry that is newer, for a tick.
func (c *Consumer) wait(ctx context.Context, last map[string]string) error {
	if len(last) == 0 {
		retry.Sleep(ctx, c.tick())
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
	bounded, cancel := context.WithTimeout(ctx, c.tick()+redisclient.IOTimeout)
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
		c.consuming.Note(nil)
	case ended(ctx):
		c.flights.doubt()
	default:
		c.consuming.Note(err)
		c.flights.doubt() // entries may have been given in an answer that did not come
		if strings.Contains(err.Error(), "NOGROUP") {
			c.joined = false // it was deleted, or the stream
			c.flights.loseAll()
		}
		retry.Sleep(ctx, retryAfter())
	}
}

// Close leaves the group; records in flight go to others at once if Redis is there, else after Takeover.
func (c *Consumer) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.keeper.end()
	c.flights.loseAll()
	if c.joined {
		c.leave()
	}
	_ = c.client.Close() // its connections end in any case
	_ = c.once.Close()
	if c.waiting != nil {
		_ = c.waiting.Close()
	}
	return nil
}

// leave tells Redis, so that others need not wait.
func (c *Consumer) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), redisclient.IOTimeout)
	defer cancel()
	keys, token := append([]string{c.leases.members}, c.group.Streams...), ""
	if c.group.Ordered {
		keys, token = append(keys, c.leases.of(c.group.Streams)...), c.leases.token
	}
	if err := c.scripts.leave.Run(ctx, c.client, keys, c.group.Name, c.group.Member, token).Err(); err != nil {
		c.consuming.Note(fmt.Errorf("leave the group, others have its records in %v: %w", c.group.Takeover, err))
	}
}

// newToken is a random name.
func newToken() string { return rand.Text() }
