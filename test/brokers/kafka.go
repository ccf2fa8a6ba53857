package brokers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// Kafka is one, as options for its clients.
type Kafka []kgo.Opt

// KafkaAt is the one at an address, host:port.
func KafkaAt(addr string) Kafka { return Kafka{kgo.SeedBrokers(addr)} }

// within bounds what is done once.
const within = 10 * time.Second

func (k Kafka) client(more ...kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RetryTimeout(within), kgo.RecordDeliveryTimeout(within),
		kgo.ProducerBatchMaxBytes(1 << 20), // as much as Kafka takes by default
	}, k...)
	return kgo.NewClient(append(all, more...)...)
}

// CreateTopic creates a topic with the broker's number of replicas and settings such as max.message.bytes, and
// waits until it can be used. Where there is one of the name it changes nothing.
func (k Kafka) CreateTopic(ctx context.Context, topic string, partitions int, settings map[string]string) error {
	client, err := k.client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, within)
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
		if err == nil && usable(found[topic]) {
			return nil
		}
		if !retry.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("the topic %s was created and does not come about: %w", topic, errors.Join(ctx.Err(), err))
		}
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

// Write returns when all messages are written, or with an error when some are not; others may be.
func (k Kafka) Write(ctx context.Context, messages []serving.StreamMessage) error {
	w, err := k.Writer()
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Write(ctx, messages)
}

// KafkaWriter writes messages. Many may use it at once.
type KafkaWriter struct{ client *kgo.Client }

// Writer opens a writer, which dials when it is used. The caller closes it.
func (k Kafka) Writer() (*KafkaWriter, error) {
	client, err := k.client()
	return &KafkaWriter{client}, err
}

// Write is Kafka.Write.
func (w *KafkaWriter) Write(ctx context.Context, messages []serving.StreamMessage) error {
	records := make([]*kgo.Record, len(messages))
	for i, m := range messages {
		records[i] = &kgo.Record{Topic: m.Stream, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
	}
	return w.client.ProduceSync(ctx, records...).FirstErr()
}

// Close ends the writer.
func (w *KafkaWriter) Close() { w.client.Close() }

// Read is what is committed in a topic: the records of each partition in their order.
func (k Kafka) Read(ctx context.Context, topic string) (all []serving.StreamRecord, err error) {
	left, err := k.ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	r, err := k.follow(topic, kgo.KeepControlRecords()) // which may be what a topic ends with
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for len(left) > 0 {
		records, err := r.poll(ctx, 1000)
		if err != nil {
			return nil, err
		}
		for _, one := range records {
			end, reading := left[one.Partition]
			if one.Offset+1 >= end {
				delete(left, one.Partition)
			}
			if reading && one.Offset < end && !one.Attrs.IsControl() {
				all = append(all, recordOf(one))
			}
		}
	}
	return all, nil
}

// ends is where what is committed ends, for each partition that is not empty.
func (k Kafka) ends(ctx context.Context, topic string) (map[int32]int64, error) {
	client, err := k.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("where the topic %s begins: %w", topic, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("where the topic %s ends: %w", topic, err)
	}
	found := map[int32]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, end.Partition); end.Offset > start.Offset {
			found[end.Partition] = end.Offset
		}
	})
	return found, nil
}

// KafkaReader reads what is committed in a topic as it comes, from its beginning. One goroutine uses it.
type KafkaReader struct{ client *kgo.Client }

// Follow opens a topic. The caller closes the reader.
func (k Kafka) Follow(topic string) (*KafkaReader, error) { return k.follow(topic) }

func (k Kafka) follow(topic string, more ...kgo.Opt) (*KafkaReader, error) {
	client, err := k.client(append(more, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	return &KafkaReader{client}, err
}

// Next waits for the next records, at most most.
func (r *KafkaReader) Next(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	records, err := r.poll(ctx, most)
	list := make([]serving.StreamRecord, len(records))
	for i, one := range records {
		list[i] = recordOf(one)
	}
	return list, err
}

func (r *KafkaReader) poll(ctx context.Context, most int) ([]*kgo.Record, error) {
	for {
		fetches := r.client.PollRecords(ctx, most)
		if records := fetches.Records(); len(records) > 0 {
			return records, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := fetches.Err(); err != nil {
			return nil, err
		}
	}
}

// Close ends the reader.
func (r *KafkaReader) Close() { r.client.Close() }

func recordOf(r *kgo.Record) serving.StreamRecord {
	record := serving.StreamRecord{
		Stream: r.Topic, Place: fmt.Sprintf("%d/%d", r.Partition, r.Offset), Key: r.Key, Value: r.Value, At: r.Timestamp,
	}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, serving.StreamHeader{Name: h.Key, Value: h.Value})
	}
	return record
}
