package kafkastream

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// produce writes messages and waits until the broker has all of them, or ctx ends. The
// error is that of the first which it does not have.
func produce(ctx context.Context, client *kgo.Client, messages []serving.StreamMessage) error {
	var mu sync.Mutex
	var first error
	for _, message := range messages {
		client.Produce(ctx, newMessage(message), func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = fmt.Errorf("produce to the topic %s: %w", r.Topic, err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	mu.Lock()
	defer mu.Unlock()
	return first
}
