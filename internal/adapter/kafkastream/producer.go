package kafkastream

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// Producer writes messages, outside of transactions. Many may use it at once.
type Producer struct {
	client *kgo.Client
	limits *limits
}

// NewProducer makes a producer; it dials when it is used.
func (b Broker) NewProducer() (*Producer, error) {
	p := &Producer{limits: &limits{}}
	client, err := b.client(kgo.ProducerBatchMaxBytesFn(p.limits.batch), kgo.RecordDeliveryTimeout(callTimeout))
	p.client = client
	return p, err
}

// Write returns when all messages are written, or with an error when some are not; others
// may be. With a TooLargeError none is.
func (p *Producer) Write(ctx context.Context, messages []serving.StreamMessage) error {
	if err := p.limits.check(ctx, p.client, messages); err != nil {
		return err
	}
	return produce(ctx, p.client, messages)
}

// Close ends the producer; messages that wait in a Write may be lost.
func (p *Producer) Close() { p.client.Close() }
