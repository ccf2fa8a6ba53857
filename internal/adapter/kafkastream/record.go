package kafkastream

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

func newRecord(r *kgo.Record) serving.StreamRecord {
	record := serving.StreamRecord{
		Stream: r.Topic, Place: fmt.Sprintf("%d/%d", r.Partition, r.Offset),
		Key: r.Key, Value: r.Value, At: r.Timestamp,
	}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, serving.StreamHeader{Name: h.Key, Value: h.Value})
	}
	return record
}

func newMessage(m serving.StreamMessage) *kgo.Record {
	record := &kgo.Record{Topic: m.Stream, Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return record
}
