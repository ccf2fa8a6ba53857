package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

const (
	unknownLimit = 1000012  // of a topic that we may not ask about; just below what Kafka allows by default
	mostLimit    = 64 << 20 // of one message, whatever its topic takes
	leastLimit   = 512      // the client needs so much
)

// limits knows how large the batches of topics and the metadata of offsets may be. The client asks for it from
// goroutines of its own.
type limits struct {
	mu     sync.Mutex
	topics map[string]int
	halved int // how often the room for metadata was too much
}

// metadata is the room for that of an offset, in bytes.
func (l *limits) metadata() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mostMetadata >> min(l.halved, 16)
}

// lessMetadata has there be less room from now on.
func (l *limits) lessMetadata() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halved++
}

// batch is for kgo.ProducerBatchMaxBytesFn.
func (l *limits) batch(topic string) int32 {
	limit, _ := l.of(topic)
	return int32(limit)
}

func (l *limits) of(topic string) (limit int, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit, known = l.topics[topic]
	if !known {
		return unknownLimit, false
	}
	return limit, true
}

func (l *limits) set(topic string, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics == nil {
		l.topics = map[string]int{}
	}
	l.topics[topic] = min(max(limit, leastLimit), mostLimit)
}

// forget has all read again: they have changed.
func (l *limits) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.topics = nil
}

// check holds messages to the limits of their topics. With a TooLargeError it has done
// nothing else.
func (l *limits) check(ctx context.Context, client *kgo.Client, messages []serving.StreamMessage) error {
	for i, message := range messages {
		limit, known := l.of(message.Stream)
		bytes := encodedBytes(message)
		if !known || bytes > limit { // which may have been raised since it was asked for
			if err := l.ask(ctx, client, message.Stream); err != nil {
				return err
			}
			limit, _ = l.of(message.Stream)
		}
		if bytes > limit {
			return &TooLargeError{Message: i, Stream: message.Stream, Bytes: bytes, Limit: limit}
		}
	}
	return nil
}

// ask asks the broker for the limit of a topic.
func (l *limits) ask(ctx context.Context, client *kgo.Client, topic string) error {
	limit, err := maxMessageBytes(ctx, client, topic)
	if err == nil {
		l.set(topic, limit)
	}
	return err
}

// maxMessageBytes asks for the limit of a topic.
func maxMessageBytes(ctx context.Context, client *kgo.Client, topic string) (int, error) {
	configs, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("ask for the configuration of the topic %s: %w", topic, err)
	}
	config, err := configs.On(topic, func(c *kadm.ResourceConfig) error { return c.Err })
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return 0, fmt.Errorf("the topic %s does not exist: create it", topic)
	case errors.Is(err, kerr.InvalidTopicException):
		return 0, fmt.Errorf("%q cannot be the name of a topic", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return unknownLimit, nil // those who may write need not be allowed to describe
	case err != nil:
		return 0, fmt.Errorf("ask for the configuration of the topic %s: %w", topic, err)
	}
	for _, c := range config.Configs {
		if c.Key == "max.message.bytes" {
			if limit, err := strconv.Atoi(c.MaybeValue()); err == nil {
				return limit, nil
			}
		}
	}
	return unknownLimit, nil
}

// encodedBytes is what a batch takes that has this message alone, at most: 61 bytes for
// the batch, and numbers of up to 5 and 10 bytes.
func encodedBytes(m serving.StreamMessage) int {
	bytes := 61 + 5 + 1 + 10 + 5 + 5 + len(m.Key) + 5 + len(m.Value) + 5
	for _, h := range m.Headers {
		bytes += 5 + len(h.Name) + 5 + len(h.Value)
	}
	return bytes
}
