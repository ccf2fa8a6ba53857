package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// Reader reads a topic from its beginning, as far as it is committed, in no group. One
// goroutine uses it.
type Reader struct {
	client *kgo.Client
	left   map[int32]int64 // where each partition ended that we have not read so far; nil: read on forever
}

// NewReader opens a topic. A reader that follows waits at the end for what comes; others
// end where the topic ended when they were made.
func (b Broker) NewReader(ctx context.Context, topic string, follow bool) (*Reader, error) {
	asking, err := b.client()
	if err != nil {
		return nil, err
	}
	defer asking.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	starts, ends, err := span(ctx, asking, topic)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	left := map[int32]int64{}
	for partition, start := range starts {
		from[partition] = kgo.NewOffset().At(start)
		if ends[partition] > start {
			left[partition] = ends[partition]
		}
	}
	if follow {
		left = nil
	}
	client, err := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.KeepControlRecords())
	return &Reader{client, left}, err
}

// span is where the partitions of a topic begin, and where what is committed ends.
func span(ctx context.Context, client *kgo.Client, topic string) (starts, ends map[int32]int64, err error) {
	admin := kadm.NewClient(client)
	first, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = first.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil, fmt.Errorf("the topic %s does not exist", topic)
	}
	var last kadm.ListedOffsets
	if err == nil {
		last, err = admin.ListCommittedOffsets(ctx, topic)
	}
	if err == nil {
		err = last.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask where the topic %s begins and ends: %w", topic, err)
	}
	starts, ends = map[int32]int64{}, map[int32]int64{}
	first.Each(func(o kadm.ListedOffset) { starts[o.Partition] = o.Offset })
	last.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return starts, ends, nil
}

// Next returns the next records, at most most, those of one partition in its order. At
// the end it returns io.EOF, or waits.
func (r *Reader) Next(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for r.left == nil || len(r.left) > 0 {
		fetches := r.client.PollRecords(ctx, max(most, 1))
		var records []serving.StreamRecord
		for _, record := range fetches.Records() {
			end, bounded := r.left[record.Partition]
			if bounded && record.Offset+1 >= end {
				delete(r.left, record.Partition)
			}
			if beyond := r.left != nil && (!bounded || record.Offset >= end); !beyond && !record.Attrs.IsControl() {
				records = append(records, newRecord(record))
			}
		}
		if len(records) > 0 {
			return records, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
	}
	return nil, io.EOF
}

// Close ends the reader.
func (r *Reader) Close() { r.client.Close() }
