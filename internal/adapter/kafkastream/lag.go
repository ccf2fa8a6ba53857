package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Lag is how many records of its topics the group has not committed. What ends a transaction of
// those who write counts as a record. Any goroutine may ask, until Close.
func (c *Consumer) Lag(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	client, err := c.asker()
	if err != nil {
		return 0, err
	}
	records, err := lag(ctx, kadm.NewClient(client), c.group)
	// What the client reports says more than that it could not be waited for.
	if condition := c.conditions.err(); condition != nil {
		return 0, condition
	}
	return records, err
}

func lag(ctx context.Context, admin *kadm.Client, group Group) (records int64, err error) {
	starts, err := admin.ListStartOffsets(ctx, group.Streams...)
	if err != nil {
		return 0, fmt.Errorf("ask where topics begin: %w", err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, group.Streams...)
	if err != nil {
		return 0, fmt.Errorf("ask where topics end: %w", err)
	}
	if err := topicErrors(ends); err != nil {
		return 0, err
	}
	committed, err := admin.FetchOffsets(ctx, group.Name)
	if err == nil {
		err = committed.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the offsets of the group %s: %w", group.Name, err)
	}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		at := start.Offset
		if done, ok := committed.Lookup(end.Topic, end.Partition); ok {
			at = max(at, done.At)
			records -= doneBeyond(done.Metadata, done.At)
		}
		records += max(end.Offset-at, 0)
	})
	return records, nil
}

// doneBeyond is how many records are done beyond a committed offset.
func doneBeyond(metadata string, committed int64) int64 {
	undone, end := decodeBeyond(metadata, committed)
	done := end - committed
	for _, e := range undone {
		done -= e.to - e.from
	}
	return done
}

// topicErrors are those of topics and their partitions, each once.
func topicErrors(ends kadm.ListedOffsets) error {
	said := map[string]error{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Err != nil {
			said[end.Topic] = fmt.Errorf("topic %s: %w", end.Topic, end.Err)
		}
	})
	var errs []error
	for _, topic := range slices.Sorted(maps.Keys(said)) {
		errs = append(errs, said[topic])
	}
	return errors.Join(errs...)
}

// asker is the client of Lag: that of the session comes and goes.
func (c *Consumer) asker() (*kgo.Client, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	switch {
	case c.silent:
		return nil, errClosed
	case c.client != nil:
		return c.client, nil
	}
	opts, err := c.broker.options(c.conditions)
	if err != nil {
		return nil, err
	}
	if c.client, err = kgo.NewClient(opts...); err != nil {
		return nil, fmt.Errorf("make a client of kafka: %w", err)
	}
	return c.client, nil
}

// silence ends what Lag asks with.
func (c *Consumer) silence() {
	c.asking.Lock()
	defer c.asking.Unlock()
	c.silent = true
	if c.client != nil {
		c.client.Close()
	}
}
