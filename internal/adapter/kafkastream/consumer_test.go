//go:build servers

package kafkastream

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/topsail-serving/topsail/serving"
)

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
	in, out := fresh(t, b, 1, nil), fresh(t, b, 1, map[string]string{"max.message.bytes": "3000"})
	write(t, b, numbered(in, 201)...)
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	var records []serving.StreamRecord
	for len(records) < 201 {
		records = append(records, poll(t, c, 201)...)
	}
	message := serving.StreamMessage{Stream: out, Key: []byte("key"), Headers: []serving.StreamHeader{{Name: "n", Value: []byte("v")}}}
	message.Value = make([]byte, 3000-encodedBytes(message))
	for i := range message.Value {
		message.Value[i] = byte(rand.N(256)) // so that it does not compress
	}
	small := numbered(out, 200) // together they are more than a batch may have
	larger := message
	larger.Value = append(message.Value, 0)
	err := try(t.Context(), c, records, append(small, larger))
	large, ok := errors.AsType[*TooLargeError](err)
	if !ok || large.TooLarge() != 200 || large.Bytes != 3001 || large.Limit != 3000 || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("error %v", err)
	}
	if err := try(t.Context(), c, records, append(small, message)); err != nil {
		t.Fatal(err)
	}
	results(t, b, out, 201)
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
	if err := past(t, b).CreateTopic(t.Context(), out, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := values(records); !slices.Equal(got, []string{"0", "1"}) || records[0].IsLost() {
		t.Fatalf("there came %v", got)
	}
	commit(t, c, records, numbered(out, 2))
	results(t, b, out, 2)

	late := in + "-late"
	waiting := join(t, b, Group{Name: late, Member: "a", Streams: []string{late}})
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := waiting.Poll(short, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := past(t, b).CreateTopic(t.Context(), late, 1, nil); err != nil {
		t.Fatal(err)
	}
	write(t, b, numbered(late, 1)...)
	began := time.Now()
	poll(t, waiting, 1)
	t.Logf("a topic was found after %v", time.Since(began).Round(time.Millisecond))
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
		err := past(t, b).CreateTopic(t.Context(), in, 1, nil)
		if _, err2 := past(t, b).Read(t.Context(), in); err == nil && err2 == nil {
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
