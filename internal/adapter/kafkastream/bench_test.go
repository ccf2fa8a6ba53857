//go:build servers

package kafkastream

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// BenchmarkPollCommit has a member poll 500 records of 100 bytes and commit as many
// results, again and again.
func BenchmarkPollCommit(b *testing.B) {
	const batch = 500
	kafka := broker(b, shared.start(b).Addr)
	in, out := fresh(b, kafka, 4, nil), fresh(b, kafka, 4, nil)
	messages := make([]serving.StreamMessage, batch)
	for i := range messages {
		messages[i] = serving.StreamMessage{Stream: in, Key: []byte{byte(i)}, Value: make([]byte, 100)}
	}
	for range b.N {
		write(b, kafka, messages...)
	}
	c := join(b, kafka, Group{Name: in, Member: "a", Streams: []string{in}})
	for i := range messages {
		messages[i].Stream = out
	}
	b.ResetTimer()
	began, done := time.Now(), 0
	for done < b.N*batch {
		records, err := c.Poll(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		if err := try(b.Context(), c, records, messages[:len(records)]); err != nil {
			b.Fatal(err)
		}
		done += len(records)
	}
	b.ReportMetric(float64(done)/time.Since(began).Seconds(), "records/s")
}
