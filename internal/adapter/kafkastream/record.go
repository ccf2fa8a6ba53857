package kafkastream

import (
	"fmt"
	"strconv"
	"strings"

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

// parsePlace is where a record is that newRecord made.
func parsePlace(r *serving.StreamRecord) (at place, offset int64, err error) {
	partition, text, _ := strings.Cut(r.Place, "/")
	number, err := strconv.ParseInt(partition, 10, 32)
	if err == nil {
		offset, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return place{}, 0, fmt.Errorf("%s is no place of a record: %w", r.Position(), err)
	}
	return place{r.Stream, int32(number)}, offset, nil
}

func newMessage(m serving.StreamMessage) *kgo.Record {
	record := &kgo.Record{Topic: m.Stream, Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return record
}
