package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/topsail-serving/topsail/internal/retry"
)

// CreateTopic creates a topic, with the broker's number of replicas, and waits until it can
// be used. Where there is one of the name it changes nothing. settings are of the topic, such
// as max.message.bytes.
func (b Broker) CreateTopic(ctx context.Context, topic string, partitions int, settings map[string]string) error {
	client, err := b.client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	configs := map[string]*string{}
	for key, value := range settings {
		configs[key] = &value
	}
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, int32(partitions), -1, configs, topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create the topic %s: %w", topic, err)
	}
	for {
		found, err := admin.ListTopics(ctx, topic)
		switch {
		case err == nil && usable(found[topic]):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the topic %s was created and does not come about: %w", topic, errors.Join(ctx.Err(), err))
		}
		retry.Sleep(ctx, 20*time.Millisecond)
	}
}

// usable says that there is a broker for each partition.
func usable(topic kadm.TopicDetail) bool {
	for _, p := range topic.Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return topic.Err == nil && len(topic.Partitions) > 0
}
