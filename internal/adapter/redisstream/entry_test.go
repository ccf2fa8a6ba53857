package redisstream

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// An entry that can be read becomes the same record again when it is written as a message.
func FuzzEntry(f *testing.F) {
	f.Add([]byte("key\x00k\x00value\x00v"))
	f.Add([]byte("value\x00v\x00key\x00k\x00key\x00again\x00trace\x00t"))
	f.Add([]byte("a\x00b\x00c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		record, err := newRecord("s", "1-0", texts(data))
		if err != nil {
			if !errors.Is(err, errAnswer) {
				t.Fatal(err)
			}
			return
		}
		written := fields(serving.StreamMessage{Key: record.Key, Value: record.Value, Headers: record.Headers})
		for i := range written {
			if b, ok := written[i].([]byte); ok {
				written[i] = string(b)
			}
		}
		again, err := newRecord("s", "1-0", written)
		if err != nil {
			t.Fatal(err)
		}
		equal := func(a, b serving.StreamHeader) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
		if !bytes.Equal(again.Key, record.Key) || !bytes.Equal(again.Value, record.Value) || !slices.EqualFunc(again.Headers, record.Headers, equal) {
			t.Fatalf("%+v becomes %+v", record, again)
		}
	})
}

// FuzzPoll gives the parser of answers lists in lists.
func FuzzPoll(f *testing.F) {
	f.Add([]byte("(((\x01i(kv)))(01)())"))
	f.Add([]byte("(((\x00)(\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _ := lists(data, 0)
		var answer any = all
		if len(all) == 1 {
			answer = all[0]
		}
		polled, err := parsePoll([]string{"a", "b"}, answer)
		if err != nil && !errors.Is(err, errAnswer) {
			t.Fatal(err)
		}
		for _, r := range polled.records {
			if err == nil && r.Stream != "a" && r.Stream != "b" {
				t.Fatalf("a record of %q", r.Stream)
			}
		}
	})
}

func texts(data []byte) []any {
	var list []any
	for part := range bytes.SplitSeq(data, []byte{0}) {
		list = append(list, string(part))
	}
	return list
}

// lists makes an answer: "(" begins a list, ")" ends it, a byte below ' ' is a number, other
// bytes are text.
func lists(data []byte, depth int) (list []any, rest []byte) {
	for len(data) > 0 {
		b := data[0]
		data = data[1:]
		switch {
		case b == ')':
			return list, data
		case b == '(' && depth < 5:
			var inner []any
			inner, data = lists(data, depth+1)
			list = append(list, inner)
		case b < ' ':
			list = append(list, int64(b))
		default:
			list = append(list, string(rune(b)))
		}
	}
	return list, nil
}

func TestKeysShareTheSlotOfTheirStream(t *testing.T) {
	for stream, tag := range map[string]string{"wine": "wine", "{wine}:in": "wine", "a{b}c{d}": "b", "a{}b": "a{}b", "a{b": "a{b", "{}{a}": "{}{a}"} {
		if got := hashTag(stream); got != tag {
			t.Errorf("%s has the tag %s", stream, got)
		}
		// A name that has no tag and cannot be one is only of use outside of a Cluster.
		if got := hashTag(key(stream, "g", "lease")); got != tag && tag != "a{}b" && tag != "{}{a}" {
			t.Errorf("the lease of %s has the tag %s", stream, got)
		}
	}
}
