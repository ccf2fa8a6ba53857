//go:build servers

package kafkastream

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// writeUnread writes a batch that is small for the broker and too large for who unpacks it.
func writeUnread(t *testing.T, b Broker, topic, key string) {
	t.Helper()
	client, err := b.client(
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(80<<20), kgo.ProducerLinger(time.Second),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	zeros, batch := make([]byte, 1<<20), make([]*kgo.Record, 70)
	for i := range batch {
		batch[i] = &kgo.Record{Topic: topic, Key: []byte(key), Value: zeros}
	}
	if err := client.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// wantUnread polls a batch that cannot be read.
func wantUnread(t *testing.T, c *Consumer, topic, place, why string) []serving.StreamRecord {
	t.Helper()
	records := poll(t, c, 500)
	if len(records) != 1 {
		t.Fatalf("%d records, want the batch at %s", len(records), place)
	}
	r := records[0]
	if r.Stream != topic || r.Place != place || !strings.Contains(r.Unread, why) || r.Key != nil || r.Value != nil || r.At.IsZero() {
		t.Fatalf("record %+v, want the batch at %s", r, place)
	}
	return records
}

// wantNext polls one record, and commits it with a result.
func wantNext(t *testing.T, c *Consumer, value, out string) {
	t.Helper()
	records := poll(t, c, 500)
	if got := values(records); !slices.Equal(got, []string{value}) || records[0].Unread != "" {
		t.Fatalf("there come %q, want %s", got, value)
	}
	commit(t, c, records, numbered(out, 1))
}

// A batch that unpacks to more than is read does not stop its partition. It comes until it
// is committed, once, with a record before it and without.
func TestBatchThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		before       []serving.StreamMessage
		place, where string
	}{
		"first":           {nil, "0/0-69", "records 0 to 69 "},
		"behind a record": {numbered("", 1), "0/1-70", "records 1 to 70 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := broker(t, shared.start(t).Addr)
			in, out := fresh(t, b, 1, nil), fresh(t, b, 1, nil)
			for _, m := range one.before {
				m.Stream = in
				write(t, b, m)
			}
			writeUnread(t, b, in, "")
			a := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
			for _, m := range one.before {
				wantNext(t, a, string(m.Value), out)
			}
			batch := wantUnread(t, a, in, one.place, one.where)
			if err := try(t.Context(), a, batch, numbered(out+"-missing", 1)); err == nil {
				t.Fatal("a topic that does not exist takes results")
			}
			commit(t, a, batch, numbered(out, 1))

			// Who met it goes on itself, and so does who comes next.
			write(t, b, serving.StreamMessage{Stream: in, Value: []byte("behind")})
			wantNext(t, a, "behind", out)
			writeUnread(t, b, in, "")
			if err := try(t.Context(), a, poll(t, a, 500), nil); err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			write(t, b, serving.StreamMessage{Stream: in, Value: []byte("last")})
			wantNext(t, join(t, b, Group{Name: in, Member: "b", Streams: []string{in}, Takeover: takeover}), "last", out)
			results(t, b, out, len(one.before)+3)
		})
	}
}

// A batch comes although the client forgets that it stopped there: what it fetched ahead goes
// when it goes on behind another batch.
func TestBatchThatCannotBeReadIsForgotten(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in, out := fresh(t, b, 4, nil), fresh(t, b, 1, nil)
	for _, key := range []string{"w", "x", "y", "z"} {
		write(t, b, serving.StreamMessage{Stream: in, Key: []byte(key)})
		writeUnread(t, b, in, key)
		write(t, b, serving.StreamMessage{Stream: in, Key: []byte(key)})
	}
	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	seen := map[string]int{}
	for end := time.Now().Add(patience); len(seen) < 12; {
		if time.Now().After(end) {
			t.Fatalf("%d of 12 come", len(seen))
		}
		records := poll(t, c, 1)
		if err := try(t.Context(), c, records, numbered(out, 1)); err != nil {
			t.Log(err) // it comes again
			continue
		}
		if seen[records[0].Place]++; seen[records[0].Place] > 1 {
			t.Errorf("%s comes again", records[0].Place)
		}
	}
	results(t, b, out, 12)
}

// A batch that moves to another member while it is in flight gets one result.
func TestBatchThatCannotBeReadMoves(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in, out := fresh(t, b, 4, nil), fresh(t, b, 1, nil)
	writeUnread(t, b, in, "x")
	writeUnread(t, b, in, "y")
	group := Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover}
	a := join(t, b, group)
	first := poll(t, a, 1)
	var working sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer working.Wait()
	defer cancel()
	work := func(c *Consumer) {
		for ctx.Err() == nil {
			records, err := c.Poll(ctx, 1)
			if err == nil {
				err = try(ctx, c, records, []serving.StreamMessage{{Stream: out, Value: []byte(records[0].Place)}})
			}
			if err != nil {
				t.Log(err) // it comes again
			}
		}
	}
	group.Member = "b"
	other := join(t, b, group)
	working.Go(func() { work(other) })
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, generation := a.session.client.GroupMetadata(); generation > 2 || first[0].IsLost() {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing moves")
		}
	}
	late := try(ctx, a, first, []serving.StreamMessage{{Stream: out, Value: []byte("late")}})
	if late != nil {
		t.Log(late)
	}
	working.Go(func() { work(a) })
	write(t, b, numbered(in, 5)...)
	seen := map[string]int{}
	for _, place := range values(results(t, b, out, 7)) {
		seen[place]++
	}
	if len(seen) != 7 || (seen["late"] > 0) != (late == nil) {
		t.Errorf("results %v, error %v", seen, late)
	}
}
