package redisstream

import (
	"errors"

	"github.com/topsail-serving/topsail/serving"
)

var errAnswer = errors.New("redis answers otherwise than it should")

// parsePoll reads the answer of poll.lua about streams.
func parsePoll(streams []string, answer any) (records []serving.StreamRecord, last map[string]string, err error) {
	parts, ok := answer.([]any)
	if !ok || len(parts) != 2 {
		return nil, nil, errAnswer
	}
	given, ok := parts[0].([]any)
	lasts, ok2 := parts[1].([]any)
	if !ok || !ok2 || len(lasts) > len(streams) {
		return nil, nil, errAnswer
	}
	for _, one := range given {
		record, err := parseGiven(streams, one)
		if err != nil {
			return nil, nil, err
		}
		records = append(records, record)
	}
	last = map[string]string{}
	for i, id := range lasts {
		if last[streams[i]], ok = id.(string); !ok {
			return nil, nil, errAnswer
		}
	}
	return records, last, nil
}

// parseGiven reads an entry with the index of its stream before it.
func parseGiven(streams []string, one any) (serving.StreamRecord, error) {
	given, ok := one.([]any)
	if !ok || len(given) != 3 {
		return serving.StreamRecord{}, errAnswer
	}
	i, ok := given[0].(int64)
	if !ok || i < 1 || int(i) > len(streams) {
		return serving.StreamRecord{}, errAnswer
	}
	return parseEntry(streams[i-1], given[1:])
}

// parseEntry reads an entry of a stream: its id and a list of its fields.
func parseEntry(stream string, one any) (serving.StreamRecord, error) {
	entry, ok := one.([]any)
	if !ok || len(entry) != 2 {
		return serving.StreamRecord{}, errAnswer
	}
	id, ok := entry[0].(string)
	list, ok2 := entry[1].([]any)
	if !ok || !ok2 {
		return serving.StreamRecord{}, errAnswer
	}
	return newRecord(stream, id, list)
}
