package brokers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
)

// Redis is one.
type Redis redisclient.Server

// RedisAt is the one at an address, host:port.
func RedisAt(addr string) Redis { return Redis{Addrs: []string{addr}} }

func (r Redis) client() redis.UniversalClient {
	server := redisclient.Server(r)
	return server.Connect(4, redisclient.DoNotRepeat)
}

// Write returns when all messages are written, or with an error when some may not be.
func (r Redis) Write(ctx context.Context, messages []serving.StreamMessage) error {
	w, _ := r.Writer()
	defer w.Close()
	return w.Write(ctx, messages)
}

// RedisWriter writes messages. Many may use it at once.
type RedisWriter struct{ client redis.UniversalClient }

// Writer opens a writer, which dials when it is used. The caller closes it. Its error is nil.
func (r Redis) Writer() (*RedisWriter, error) { return &RedisWriter{r.client()}, nil }

// Write is Redis.Write.
func (w *RedisWriter) Write(ctx context.Context, messages []serving.StreamMessage) error {
	_, err := w.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, m := range messages {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: m.Stream, Values: fields(m)})
		}
		return nil
	})
	return err
}

// Close ends the writer.
func (w *RedisWriter) Close() { _ = w.client.Close() }

// page is how many entries are read at once.
const page = 1000

// Read is what a stream has, in its order.
func (r Redis) Read(ctx context.Context, stream string) (all []serving.StreamRecord, err error) {
	reader, _ := r.Follow(stream)
	defer reader.Close()
	for {
		records, err := reader.read(ctx, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, records...); len(records) < page {
			return all, nil
		}
	}
}

// RedisReader reads a stream as it grows, from its beginning. One goroutine uses it.
type RedisReader struct {
	client redis.UniversalClient
	stream string
	after  string // the last entry that was read
}

// Follow opens a stream. The caller closes the reader. Its error is nil.
func (r Redis) Follow(stream string) (*RedisReader, error) {
	return &RedisReader{r.client(), stream, "0-0"}, nil
}

// Next waits for the next records, at most most.
func (r *RedisReader) Next(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for ctx.Err() == nil {
		if records, err := r.read(ctx, most); err != nil || len(records) > 0 {
			return records, err
		}
		err := r.client.XRead(ctx, &redis.XReadArgs{Streams: []string{r.stream, r.after}, Count: 1, Block: time.Second}).Err()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	return nil, context.Cause(ctx)
}

// read reads what there is, at most most.
func (r *RedisReader) read(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	entries, err := r.client.Do(ctx, "XRANGE", r.stream, "("+r.after, "+", "COUNT", most).Slice()
	if err != nil {
		return nil, err
	}
	records := make([]serving.StreamRecord, len(entries))
	for i, one := range entries {
		entry, ok := one.([]any)
		if !ok || len(entry) != 2 {
			return nil, fmt.Errorf("%s has an entry %v", r.stream, one)
		}
		r.after = fmt.Sprint(entry[0])
		records[i] = entryOf(r.stream, r.after, entry[1])
	}
	return records, nil
}

// Close ends the reader.
func (r *RedisReader) Close() { _ = r.client.Close() }

// fields are those of a message: the key, if it has one, the value, and headers.
func fields(m serving.StreamMessage) []any {
	var list []any
	if m.Key != nil || slices.ContainsFunc(m.Headers, func(h serving.StreamHeader) bool { return h.Name == "key" }) {
		list = append(list, "key", m.Key)
	}
	list = append(list, "value", m.Value)
	for _, h := range m.Headers {
		list = append(list, h.Name, h.Value)
	}
	return list
}

// entryOf is the record of an entry, whose id begins with its time in milliseconds.
func entryOf(stream, id string, fields any) serving.StreamRecord {
	record := serving.StreamRecord{Stream: stream, Place: id}
	written, _, _ := strings.Cut(id, "-")
	if millis, err := strconv.ParseInt(written, 10, 64); err == nil {
		record.At = time.UnixMilli(millis)
	}
	list, _ := fields.([]any)
	for pair := range slices.Chunk(list, 2) {
		name, value := fmt.Sprint(pair[0]), []byte(fmt.Sprint(pair[1]))
		switch {
		case name == "key" && record.Key == nil:
			record.Key = value
		case name == "value" && record.Value == nil:
			record.Value = value
		default:
			record.Headers = append(record.Headers, serving.StreamHeader{Name: name, Value: value})
		}
	}
	return record
}
