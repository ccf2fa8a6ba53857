package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// broker is one stream in memory with one member, which may be cut off at any time: then
// what it did not commit comes again.
type broker struct {
	largest int // bytes of a value that is produced

	mu      sync.Mutex
	streams map[string][]serving.StreamRecord
	done    int // records of "in" that are committed
	polled  int
	changed chan struct{}
	lose    bool // the next Commit finds the records lost
}

func newBroker() *broker {
	return &broker{largest: 1 << 20, streams: map[string][]serving.StreamRecord{}, changed: make(chan struct{})}
}

func (b *broker) write(messages ...serving.StreamMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writeLocked(messages)
}

func (b *broker) writeLocked(messages []serving.StreamMessage) {
	for _, m := range messages {
		b.streams[m.Stream] = append(b.streams[m.Stream], serving.StreamRecord{
			Stream: m.Stream, Place: fmt.Sprintf("0/%d", len(b.streams[m.Stream])), Key: m.Key, Value: m.Value, Headers: m.Headers, At: time.Now(),
		})
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *broker) read(stream string) []serving.StreamRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.streams[stream])
}

// Poll implements stream.Consumer.
func (b *broker) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for {
		b.mu.Lock()
		rest, changed := b.streams["in"][b.done:], b.changed
		rest = slices.Clone(rest[:min(most, len(rest))])
		b.polled = len(rest)
		b.mu.Unlock()
		if len(rest) > 0 {
			return rest, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

type tooLarge int

func (e tooLarge) Error() string { return fmt.Sprintf("message %d is too large", int(e)) }
func (e tooLarge) TooLarge() int { return int(e) }

// Commit implements stream.Consumer.
func (b *broker) Commit(_ context.Context, results []serving.StreamMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.polled == 0 {
		return errors.New("there are no records to commit")
	}
	for i, m := range results {
		if len(m.Value) > b.largest {
			return tooLarge(i)
		}
	}
	polled := b.polled
	b.polled = 0
	if b.lose {
		b.lose = false
		return serving.ErrRecordsLost
	}
	b.done += polled
	b.writeLocked(results)
	return nil
}

// Close implements stream.Consumer.
func (b *broker) Close() error { return nil }
