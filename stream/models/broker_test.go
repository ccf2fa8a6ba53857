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
	polled  int // of them that are given out
	lost    chan struct{}
	changed chan struct{}
	lose    bool // the next Commit finds the records lost
}

func newBroker() *broker {
	return &broker{largest: 1 << 20, streams: map[string][]serving.StreamRecord{}, changed: make(chan struct{}), lost: make(chan struct{})}
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
		rest, changed := b.streams["in"][b.polled:], b.changed
		rest = slices.Clone(rest[:min(most, len(rest))])
		b.polled += len(rest)
		for i := range rest {
			rest[i].Lost = b.lost
		}
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

// Commit implements stream.Consumer. Updates are committed in their order.
func (b *broker) Commit(_ context.Context, results []serving.StreamResult) ([]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(results) == 0 || b.done+len(results) > b.polled {
		return nil, errors.New("there are no records to commit")
	}
	var messages []serving.StreamMessage
	for i, r := range results {
		if r.Record.Place != b.streams["in"][b.done+i].Place {
			return nil, fmt.Errorf("%s is committed before %d", r.Record.Place, b.done+i)
		}
		for _, m := range r.Messages {
			if len(m.Value) > b.largest {
				return nil, tooLarge(i)
			}
		}
		messages = append(messages, r.Messages...)
	}
	if b.lose {
		b.lose = false
		b.rewind()
		return nil, serving.ErrRecordsLost
	}
	b.done += len(results)
	b.writeLocked(messages)
	return nil, nil
}

// rewind has what is not committed come again.
func (b *broker) rewind() {
	close(b.lost)
	b.lost, b.polled = make(chan struct{}), b.done
	close(b.changed)
	b.changed = make(chan struct{})
}

// Close implements stream.Consumer.
func (b *broker) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rewind()
	return nil
}
