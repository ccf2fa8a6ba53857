//go:build servers

package kafkastream

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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

// A batch that unpacks to more than is read stops its partition, and says so until somebody
// sets the offset behind it. The other partitions go on.
func TestBatchThatIsNotRead(t *testing.T) {
	t.Parallel()
	b := broker(t, shared.start(t).Addr)
	in, out := fresh(t, b, 2, nil), fresh(t, b, 1, nil)
	// The keys go to a partition each.
	record := func(key, value string) serving.StreamMessage {
		return serving.StreamMessage{Stream: in, Key: []byte(key), Value: []byte(value)}
	}
	write(t, b, record("a", "before"), record("d", "other"))
	records := results(t, b, in, 2)
	if records[0].Partition() == records[1].Partition() {
		t.Fatal("both keys go to one partition")
	}
	at := slices.IndexFunc(records, func(r serving.StreamRecord) bool { return string(r.Key) == "a" })
	partition := records[at].Partition()
	writeUnread(t, b, in, "a")
	write(t, b, record("a", "behind"), record("d", "other, later"))

	c := join(t, b, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
	var seen []string
	for len(seen) < 3 {
		records := poll(t, c, 500)
		seen = append(seen, values(records)...)
		commit(t, c, records, numbered(out, len(records)))
	}
	if slices.Sort(seen); !slices.Equal(seen, []string{"before", "other", "other, later"}) {
		t.Fatalf("there come %q", seen)
	}
	want := fmt.Sprintf("%s/%s: stands still: the batch of records 1 to 70 unpacks to more than 64 MiB, which is not read: "+
		"stop the stream's processes, and set the offset of the consumer group %s to 71", in, partition, in)
	for end := time.Now().Add(patience); ; {
		if _, err := c.session.poll(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := c.conditions.err(); err != nil && strings.Contains(err.Error(), want) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the condition is %v, want %s", c.conditions.err(), want)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.conditions.err(); err != nil {
		t.Errorf("of a partition that it no longer has it says %v", err)
	}

	offsets := kadm.Offsets{}
	number, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	offsets.AddOffset(in, int32(number), 71, -1)
	if err := admin(t, b).CommitAllOffsets(t.Context(), in, offsets); err != nil {
		t.Fatal(err)
	}
	next := join(t, b, Group{Name: in, Member: "b", Streams: []string{in}, Takeover: takeover})
	if got := values(poll(t, next, 500)); !slices.Equal(got, []string{"behind"}) {
		t.Errorf("behind the batch there come %q", got)
	}
}
