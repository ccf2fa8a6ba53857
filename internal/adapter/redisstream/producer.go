package redisstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
)

// Producer writes messages. Many may use it at once.
type Producer struct {
	client redis.UniversalClient
	maxLen int64
}

// producerConnections bounds those of a Producer.
const producerConnections = 4

// NewProducer makes a producer for streams that keep about maxLen entries; 0: all. It dials
// when it is used.
func (b Broker) NewProducer(maxLen int64) (*Producer, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	return &Producer{b.Connect(producerConnections, redisclient.DoNotRepeat), maxLen}, nil
}

// Write returns when all messages are written, or with an error when some may not be. With
// a TooLargeError none is.
func (p *Producer) Write(ctx context.Context, messages []serving.StreamMessage) error {
	if err := checkSizes(messages, defaultLimit); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	commands, err := p.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, m := range messages {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: m.Stream, MaxLen: p.maxLen, Approx: p.maxLen > 0, Values: fields(m)})
		}
		return nil
	})
	for _, command := range commands {
		err = errors.Join(err, command.Err())
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return err
}

// Close ends the producer.
func (p *Producer) Close() { _ = p.client.Close() }
