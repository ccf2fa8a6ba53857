package redisstream

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	keyField   = "key"
	valueField = "value"
)

// fields are those of a message: names and values in turn. The key and the value come
// first, so that headers of their names are headers.
func fields(m serving.StreamMessage) []any {
	var list []any
	hides := func(h serving.StreamHeader) bool { return h.Name == keyField }
	if m.Key != nil || slices.ContainsFunc(m.Headers, hides) {
		list = append(list, keyField, m.Key)
	}
	list = append(list, valueField, m.Value)
	for _, h := range m.Headers {
		list = append(list, h.Name, h.Value)
	}
	return list
}

// newRecord reads an entry as Redis sends it: a list of names and values in turn.
func newRecord(stream, id string, list []any) (serving.StreamRecord, error) {
	record := serving.StreamRecord{Stream: stream, Place: id, At: writtenAt(id)}
	if len(list)%2 != 0 {
		return record, fmt.Errorf("%w: entry %s of %s has a field without a value", errAnswer, id, stream)
	}
	var hasKey, hasValue bool
	for pair := range slices.Chunk(list, 2) {
		name, ok := pair[0].(string)
		text, ok2 := pair[1].(string)
		if !ok || !ok2 {
			return record, fmt.Errorf("%w: entry %s of %s has a field that is not text", errAnswer, id, stream)
		}
		value := []byte(text)
		switch {
		case name == keyField && !hasKey:
			record.Key, hasKey = value, true
		case name == valueField && !hasValue:
			record.Value, hasValue = value, true
		default:
			record.Headers = append(record.Headers, serving.StreamHeader{Name: name, Value: value})
		}
	}
	return record, nil
}

// writtenAt is the time in an entry's id, zero if it has none.
func writtenAt(id string) time.Time {
	text, _, _ := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
