//go:build servers

package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/topsail-serving/topsail/serving"
)

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
	for end := time.Now().Add(patience); ; {
		records := read(t, b, topic)
		if len(records) == n {
			return records
		}
		if len(records) > n || time.Now().After(end) {
			t.Fatalf("%d of %d records in %s", len(records), n, topic)
		}
	}
}

// admin changes topics past the package.
func admin(t *testing.T, b Broker) *kadm.Client {
	t.Helper()
	client, err := b.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// A rebalance between two batches costs none of them.
func TestRebalanceBetweenBatches(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in := fresh(t, b, 2, nil)
	group := Group{Name: in, Member: "a", Streams: []string{in}}
	keyed := numbered(in, 20) // of both partitions
	for i := range keyed {
		keyed[i].Key = keyed[i].Value
	}
	write(t, b, keyed...)
	a := join(t, b, group)
	if err := try(t.Context(), a, poll(t, a, 20), nil); err != nil {
		t.Fatal(err)
	}
	group.Member = "b"
	other := join(t, b, group)
	for ctx := t.Context(); ; { // until it has one of the partitions
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		_, err := other.Poll(short, 20)
		cancel()
		if err == nil {
			break
		}
		write(t, b, keyed...)
	}
	if err := try(t.Context(), a, poll(t, a, 20), nil); err != nil {
		t.Error(err)
	}
}

// A message of just the size that the topic takes is taken by the broker, and the check
// refuses the next larger one.
func TestLimitIsTheTopics(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	topic := fresh(t, b, 1, map[string]string{"max.message.bytes": "3000"})
	message := serving.StreamMessage{Stream: topic, Key: []byte("key"), Headers: []serving.StreamHeader{{Name: "n", Value: []byte("v")}}}
	message.Value = make([]byte, 3000-encodedBytes(message))
	for i := range message.Value {
		message.Value[i] = byte(rand.N(256)) // so that it does not compress
	}
	small := numbered(topic, 200) // together they are more than a batch may have
	write(t, b, append(small, message)...)
	if n := len(read(t, b, topic)); n != 201 {
		t.Errorf("%d records", n)
	}
	p, err := b.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	message.Value = append(message.Value, 0)
	err = p.Write(t.Context(), append(small, message))
	large, ok := errors.AsType[*TooLargeError](err)
	if !ok || large.TooLarge() != 200 || large.Bytes != 3001 || large.Limit != 3000 || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("error %v", err)
	}
}

// A limit that is raised later, as the error says, is found out.
func TestLimitIsRaised(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in, out := fresh(t, b, 1, nil), fresh(t, b, 1, map[string]string{"max.message.bytes": "3000"})
	write(t, b, numbered(in, 1)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	records := poll(t, c, 1)
	large := []serving.StreamMessage{{Stream: out, Value: make([]byte, 4000)}}
	if err := try(t.Context(), c, records, large); err == nil || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Fatalf("error %v", err)
	}
	more := "10000"
	if _, err := admin(t, b).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &more}}, out); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; { // until the broker has heard of it
		err := try(t.Context(), c, records, large)
		if err == nil {
			break
		}
		if _, ok := errors.AsType[*TooLargeError](err); !ok || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	results(t, b, out, 1)
}

// A limit that is lowered later is found out.
func TestLimitIsLowered(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in, out := fresh(t, b, 1, nil), fresh(t, b, 1, nil)
	write(t, b, numbered(in, 1000)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	commit(t, c, poll(t, c, 1), numbered(out, 1))
	lower := "2000"
	if _, err := admin(t, b).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &lower}}, out); err != nil {
		t.Fatal(err)
	}
	large := []serving.StreamMessage{{Stream: out, Value: make([]byte, 100_000)}}
	for i := range large[0].Value {
		large[0].Value[i] = byte(rand.N(256))
	}
	want := 1
	var records []serving.StreamRecord
	for end := time.Now().Add(patience); ; {
		records = poll(t, c, 1)
		err := try(t.Context(), c, records, large)
		if _, ok := errors.AsType[*TooLargeError](err); ok {
			break
		}
		if err == nil {
			want++ // the broker has not heard of it yet
		}
		if time.Now().After(end) {
			t.Fatalf("error %v", err)
		}
	}
	if err := try(t.Context(), c, records, numbered(out, 1)); err != nil {
		t.Fatal(err)
	}
	results(t, b, out, want+1)
}

// A topic of results that does not exist is an error that says so, and a topic to consume
// is waited for.
func TestMissingTopics(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in := fresh(t, b, 1, nil)
	out := in + "-out"
	write(t, b, numbered(in, 2)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}})
	records := poll(t, c, 5)
	if err := try(t.Context(), c, records, numbered(out, 1)); err == nil || !strings.Contains(err.Error(), out+" does not exist: create it") {
		t.Errorf("error %v", err)
	}
	if err := b.CreateTopic(t.Context(), out, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := values(records); !slices.Equal(got, []string{"0", "1"}) || records[0].IsLost() {
		t.Fatalf("there came %v", got)
	}
	commit(t, c, records, numbered(out, 2))
	results(t, b, out, 2)

	if _, err := b.NewReader(t.Context(), "nowhere", false); err == nil || !strings.Contains(err.Error(), "nowhere does not exist") {
		t.Errorf("error %v", err)
	}
	late := in + "-late"
	waiting := join(t, b, Group{Name: late, Member: "a", Streams: []string{late}})
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := waiting.Poll(short, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := b.CreateTopic(t.Context(), late, 1, nil); err != nil {
		t.Fatal(err)
	}
	write(t, b, numbered(late, 1)...)
	began := time.Now()
	poll(t, waiting, 1)
	t.Logf("a topic was found after %v", time.Since(began).Round(time.Millisecond))
}

// Close takes its time and no more, whatever connections are being made that nobody answers.
func TestCloseWithoutAnswers(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in := fresh(t, b, 1, nil)
	write(t, b, numbered(in, 1)...)
	var mu sync.Mutex
	var conns []net.Conn
	var silent bool
	wired := b
	wired.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if silent {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			return ours, nil
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			conns = append(conns, conn)
		}
		return conn, err
	}
	c := join(t, wired, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	poll(t, c, 1)
	mu.Lock()
	silent = true
	for _, conn := range conns {
		conn.Close()
	}
	mu.Unlock()
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > leaveWithin+ioTimeout {
		t.Errorf("Close takes %v", took)
	}
}

// A topic that is deleted and made again is consumed again.
func TestTopicIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in := fresh(t, b, 1, nil)
	write(t, b, numbered(in, 3)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	for done := 0; done < 3; {
		records := poll(t, c, 3)
		if err := try(t.Context(), c, records, nil); err != nil {
			t.Fatal(err)
		}
		done += len(records)
	}
	if _, err := admin(t, b).DeleteTopics(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; {
		err := b.CreateTopic(t.Context(), in, 1, nil)
		if _, err2 := b.NewReader(t.Context(), in, true); err == nil && err2 == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	write(t, b, numbered(in, 5)...)
	records := poll(t, c, 5)
	if got := values(records); got[0] != "0" {
		t.Errorf("there come %v", got)
	}
}
