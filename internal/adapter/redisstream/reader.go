package redisstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
)

// Reader reads a stream from its beginning, in no group. One goroutine uses it.
type Reader struct {
	client redis.UniversalClient
	stream string
	after  string // the last entry that was read
	end    string // the last entry to read; empty: read on forever
}

// followFor is how long Redis holds a read at the end of a stream.
const followFor = time.Second

// NewReader opens a stream. A reader that follows waits at the end for what comes; others
// end where the stream ended when they were made.
func (b Broker) NewReader(ctx context.Context, stream string, follow bool) (*Reader, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	r := &Reader{client: b.Connect(1, redisclient.Repeat), stream: stream, after: "0-0"}
	if follow {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	last, err := r.client.XRevRangeN(ctx, stream, "+", "-", 1).Result()
	if err != nil {
		_ = r.client.Close()
		return nil, fmt.Errorf("ask where %s ends: %w", stream, err)
	}
	r.end = "0-0"
	if len(last) > 0 {
		r.end = last[0].ID
	}
	return r, nil
}

// Next returns the next records, at most most. At the end it returns io.EOF, or waits.
func (r *Reader) Next(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for ctx.Err() == nil {
		records, err := r.read(ctx, most)
		switch {
		case err == nil && len(records) > 0:
			return records, nil
		case err == nil && r.end != "":
			return nil, io.EOF
		case err == nil:
			err = r.wait(ctx)
		}
		if err != nil && !ended(ctx) {
			return nil, err
		}
	}
	return nil, context.Cause(ctx)
}

// read returns what there is.
func (r *Reader) read(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.client.Do(ctx, "XRANGE", r.stream, "("+r.after, cmp.Or(r.end, "+"), "COUNT", max(most, 1)).Slice()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.stream, err)
	}
	records := make([]serving.StreamRecord, len(answer))
	for i, entry := range answer {
		if records[i], err = parseEntry(r.stream, entry); err != nil {
			return nil, err
		}
		r.after = records[i].Place
	}
	return records, nil
}

// wait waits for an entry after those that were read.
func (r *Reader) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, followFor+redisclient.IOTimeout)
	defer cancel()
	err := r.client.XRead(ctx, &redis.XReadArgs{Streams: []string{r.stream, r.after}, Count: 1, Block: followFor}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("follow %s: %w", r.stream, err)
	}
	return nil
}

// Close ends the reader.
func (r *Reader) Close() { _ = r.client.Close() }
