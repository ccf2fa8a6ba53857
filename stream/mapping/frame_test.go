package mapping

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"pgregory.net/rapid"
)

// TestFramesAreConfluents: what Confluent's format is to another library, it is to us.
func TestFramesAreConfluents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.IntRange(0, 1<<31-1).Draw(t, "id")
		indexes := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 5).Draw(t, "indexes")
		value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		format := rapid.SampledFrom([]Format{Avro, Protobuf}).Draw(t, "format")
		if format == Avro {
			indexes = nil
		}
		var header sr.ConfluentHeader
		theirs, err := header.AppendEncode(nil, id, indexes)
		if err != nil {
			t.Fatal(err)
		}
		if ours := appendFrame(nil, id, indexes); !bytes.Equal(ours, theirs) {
			t.Fatalf("schema %d with %v is %x, and is to be %x", id, indexes, ours, theirs)
		}
		f, err := parseFrame(append(theirs, value...), format)
		if err != nil || f.id != id || !slices.Equal(f.indexes, indexes) || !bytes.Equal(f.value, value) {
			t.Fatalf("schema %d with %v is read as %+v, %v", id, indexes, f, err)
		}
	})
}

func TestWrongFrames(t *testing.T) {
	for text, want := range map[string]string{
		"": "zero byte", "\x00\x00": "zero byte", "{\"a\": 1}": "zero byte",
		"\x00\x00\x00\x00\x01": "cut off", "\x00\x00\x00\x00\x01\x04\x02": "cut off", "\x00\x00\x00\x00\x01\x01": "cut off", "\x00\x00\x00\x00\x01\xff\xff\x03": "cut off",
	} {
		if _, err := parseFrame([]byte(text), Protobuf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v", text, err)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x01\x04\x02\x00value"))
	f.Add([]byte("\x00\x00\x00\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, format := range []Format{Avro, Protobuf, JSON} {
			got, err := parseFrame(text, format)
			if err != nil {
				continue
			}
			again, err := parseFrame(append(appendFrame(nil, got.id, got.indexes), got.value...), format)
			if err != nil || again.id != got.id || !slices.Equal(again.indexes, got.indexes) || !bytes.Equal(again.value, got.value) {
				t.Fatalf("%+v is read again as %+v, %v", got, again, err)
			}
		}
	})
}
