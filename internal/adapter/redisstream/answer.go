package redisstream

import (
	"errors"

	"github.com/topsail-serving/topsail/serving"
)

var errAnswer = errors.New("redis answers otherwise than it should")

// polled is the answer of poll.lua about streams.
type polled struct {
	records []serving.StreamRecord
	behind  []string // of each stream
	last    []string // the same; none where there are records
}

// parsePoll reads the answer of poll.lua about streams.
func parsePoll(streams []string, answer any) (p polled, err error) {
	parts, ok := answer.([]any)
	if !ok || len(parts) != 3 {
		return polled{}, errAnswer
	}
	given, ok := parts[0].([]any)
	if !ok {
		return polled{}, errAnswer
	}
	for _, one := range given {
		record, err := parseGiven(streams, one)
		if err != nil {
			return polled{}, err
		}
		p.records = append(p.records, record)
	}
	if p.behind, err = parseTexts(parts[1]); err != nil {
		return polled{}, err
	}
	p.last, err = parseTexts(parts[2])
	if err != nil || len(p.behind) != len(streams) || len(p.last) > len(streams) {
		return polled{}, errAnswer
	}
	return p, nil
}

func parseTexts(answer any) ([]string, error) {
	list, ok := answer.([]any)
	if !ok {
		return nil, errAnswer
	}
	texts := make([]string, len(list))
	for i, one := range list {
		if texts[i], ok = one.(string); !ok {
			return nil, errAnswer
		}
	}
	return texts, nil
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
