package kafkastream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/brokers"
)

// patience bounds every wait; nothing takes that long.
const patience = 30 * time.Second

// takeover is as short as busy machines allow.
const takeover = 3 * time.Second

// lookAgain is between two looks at what is waited for. Without it a bubble's time would stand still.
const lookAgain = 10 * time.Millisecond

func broker(t testing.TB, addr string) Broker {
	return Broker{Addrs: []string{addr}, Log: logger(t)}
}

// past is the broker past the package, which gets into it the same way.
func past(t testing.TB, b Broker) brokers.Kafka {
	t.Helper()
	options, err := b.options(newConditions(b.Log))
	if err != nil {
		t.Fatal(err)
	}
	return options
}

var topics atomic.Int64

// fresh is the name of a topic that no other test has.
func fresh(t testing.TB, b Broker, partitions int, settings map[string]string) string {
	t.Helper()
	name := fmt.Sprintf("topic-%d", topics.Add(1))
	if err := past(t, b).CreateTopic(t.Context(), name, partitions, settings); err != nil {
		t.Fatal(err)
	}
	return name
}

func write(t testing.TB, b Broker, messages ...serving.StreamMessage) {
	t.Helper()
	if err := past(t, b).Write(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// read is all that is committed in a topic.
func read(t testing.TB, b Broker, topic string) []serving.StreamRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for end := time.Now().Add(patience); ; time.Sleep(lookAgain) {
		all, err := past(t, b).Read(ctx, topic)
		if err == nil {
			return all
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func join(t testing.TB, b Broker, g Group) *Consumer {
	t.Helper()
	c, err := Join(b, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// numbered are n messages to a topic.
func numbered(topic string, n int) []serving.StreamMessage {
	messages := make([]serving.StreamMessage, n)
	for i := range messages {
		messages[i] = serving.StreamMessage{Stream: topic, Value: fmt.Append(nil, i)}
	}
	return messages
}

func poll(t *testing.T, c *Consumer, most int) []serving.StreamRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	records, err := c.Poll(ctx, most)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// pair are the results of records: a message each, or all of them with the last one.
func pair(records []serving.StreamRecord, messages []serving.StreamMessage) []serving.StreamResult {
	results := make([]serving.StreamResult, len(records))
	for i := range records {
		results[i].Record = &records[i]
		if len(messages) == len(records) {
			results[i].Messages = messages[i : i+1]
		}
	}
	if n := len(records); n > 0 && len(messages) != n {
		results[n-1].Messages = messages
	}
	return results
}

// try commits once.
func try(ctx context.Context, c *Consumer, records []serving.StreamRecord, messages []serving.StreamMessage) error {
	waiting, err := c.Commit(ctx, pair(records, messages))
	if err == nil && len(waiting) > 0 {
		err = fmt.Errorf("%d records have to wait", len(waiting))
	}
	return err
}

// commit commits, and polls again what was lost.
func commit(t *testing.T, c *Consumer, records []serving.StreamRecord, results []serving.StreamMessage) {
	t.Helper()
	for {
		err := try(t.Context(), c, records, results)
		if err == nil {
			return
		}
		if !errors.Is(err, serving.ErrRecordsLost) {
			t.Fatal(err)
		}
		if records = poll(t, c, len(records)); len(records) != len(results) {
			t.Fatalf("%d of %d records are redelivered", len(records), len(results))
		}
	}
}

func values(records []serving.StreamRecord) []string {
	var list []string
	for _, r := range records {
		list = append(list, string(r.Value))
	}
	return list
}

// results waits for n committed records.
func results(t *testing.T, b Broker, topic string, n int) []serving.StreamRecord {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(lookAgain) {
		records := read(t, b, topic)
		if len(records) == n {
			return records
		}
		if len(records) > n || time.Now().After(end) {
			t.Fatalf("%d of %d records in %s", len(records), n, topic)
		}
	}
}

// admin changes topics and offsets past the package.
func admin(t *testing.T, b Broker) *kadm.Client {
	t.Helper()
	client, err := b.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// buffer is a log that many write and one reads.
type buffer struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}
