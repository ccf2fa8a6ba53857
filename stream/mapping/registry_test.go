package mapping

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/require"
)

// registry is one in memory.
type registry struct {
	schemas map[int]Schema
	err     error // of the next calls
	asked   int
	added   []string // subjects
}

func (r *registry) Schema(_ context.Context, id int) (Schema, error) {
	r.asked++
	s, is := r.schemas[id]
	if r.err == nil && !is {
		return s, ErrUnknownSchema
	}
	return s, r.err
}

func (r *registry) Register(_ context.Context, subject string, _ Schema, _ bool) (int, error) {
	r.added = append(r.added, subject)
	return 1000 + len(r.added), r.err
}

func TestSchemasOfARegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &registry{schemas: map[int]Schema{
			1: {Format: Protobuf, Text: protoText(t)}, 2: {Format: Avro, Text: orderAvro}, 3: {Format: Protobuf, Text: "nonsense"},
			4: {Format: Protobuf, Text: `syntax = "proto3"; import "other.proto"; message A { B b = 1; }`, References: []Reference{{"other.proto", `syntax = "proto3"; message B { string id = 1; }`}}},
		}}
		m, err := New(Config{Format: Protobuf, ID: "id"}, known)
		require.NoError(t, err)
		read := func(id int, indexes []int, value []byte) (*Record, error) {
			return m.Read(t.Context(), &serving.StreamRecord{Stream: "s", Place: "0/0", Value: append(appendFrame(nil, id, indexes), value...)})
		}
		for range 3 {
			if r, err := read(1, []int{1}, orderMessage(t, `{"id": "x"}`)); err != nil || r.ID != "x" {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		if known.asked != 1 {
			t.Errorf("the registry was asked %d times", known.asked)
		}
		for _, one := range []struct {
			id      int
			indexes []int
			reason  stream.Reason
			want    string
		}{
			{1, []int{9}, stream.Unreadable, "no message of the indexes [9]"}, {1, []int{1, 5}, stream.Unreadable, "no message of the indexes"},
			{2, []int{0}, stream.Unreadable, "is not one of protobuf"}, {3, []int{0}, UnknownSchema, "not a protobuf schema"}, {99, []int{0}, UnknownSchema, "another registry"},
			{4, []int{0}, stream.NoID, "no id at id"},
		} {
			_, err := read(one.id, one.indexes, nil)
			if rejection, is := errors.AsType[*stream.Rejection](err); !is || rejection.Reason != one.reason || !strings.Contains(err.Error(), one.want) {
				t.Errorf("schema %d, %v: %v", one.id, one.indexes, err)
			}
		}
		// What is not known is asked for again after a while, and so is what could not be asked for.
		known.schemas[99] = known.schemas[1]
		if _, err := read(99, []int{1}, orderMessage(t, `{"id": "x"}`)); err == nil {
			t.Error("it is known at once")
		}
		time.Sleep(refusedFor)
		if _, err := read(99, []int{1}, orderMessage(t, `{"id": "x"}`)); err != nil {
			t.Errorf("it is not known later: %v", err)
		}
		known.err = errors.New("connection refused")
		if _, err := read(100, []int{1}, nil); !errors.Is(err, ErrUnavailable) || !errors.Is(err, known.err) {
			t.Errorf("without the registry: %v", err)
		}
		if _, err := read(1, []int{1}, orderMessage(t, `{"id": "x"}`)); err != nil {
			t.Errorf("what is known needs no registry: %v", err)
		}
	})
}

// TestSchemasAreBounded: the oldest one is forgotten.
func TestSchemasAreBounded(t *testing.T) {
	known := &registry{schemas: map[int]Schema{}}
	s := newSchemas(known)
	for id := range maxSchemas + 10 {
		known.schemas[id] = Schema{Format: Avro, Text: `"string"`}
		if _, err := s.get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.known) != maxSchemas || len(s.ids) != maxSchemas {
		t.Errorf("%d are known", len(s.known))
	}
	if _, err := s.get(t.Context(), 0); err != nil || known.asked != maxSchemas+11 {
		t.Errorf("asked %d times, %v", known.asked, err)
	}
}

// TestRegisteredResults have the id of their schema before them, by the subject of their topic.
func TestRegisteredResults(t *testing.T) {
	known := &registry{}
	w, err := NewWriter(ResultConfig{Value: OutputOnly, Format: Protobuf, SchemaFile: orderProto, Message: "shop.v1.Scored.Prediction"}, JSON, known)
	if err != nil || !w.Registers() {
		t.Fatal(err)
	}
	const output = `{"score": 2}`
	if _, err := w.Write("out", nil, nil, []byte(output)); err == nil || !strings.Contains(err.Error(), "not registered") {
		t.Errorf("before: %v", err)
	}
	if err := w.Register(t.Context(), []string{"out", "other"}); err != nil || !slices.Equal(known.added, []string{"out-value", "other-value"}) {
		t.Errorf("registered %v, %v", known.added, err)
	}
	value, err := w.Write("other", nil, nil, []byte(output))
	f, wrong := parseFrame(value, Protobuf)
	if err != nil || wrong != nil || f.id != 1002 || !slices.Equal(f.indexes, []int{2, 0}) {
		t.Errorf("%x is %+v, %v, %v", value, f, err, wrong)
	}
	known.err = errors.New("it is not compatible")
	if err := w.Register(t.Context(), []string{"out"}); err == nil || !strings.Contains(err.Error(), "subject out-value: it is not compatible") {
		t.Errorf("%v", err)
	}
}

// TestJSONBesideARegistry comes with a frame or without.
func TestJSONBesideARegistry(t *testing.T) {
	m, err := New(Config{Format: JSON, ID: "id"}, &registry{})
	require.NoError(t, err)
	for _, value := range []string{`{"id": "x"}`, "\x00\x00\x00\x00\x07" + `{"id": "x"}`} {
		if r, err := m.Read(t.Context(), &serving.StreamRecord{Value: []byte(value)}); err != nil || r.ID != "x" {
			t.Errorf("%q: %+v, %v", value, r, err)
		}
	}
}

// TestRecordsWithoutTheRegistry of their results have a schema of their own.
func TestRecordsWithoutTheRegistry(t *testing.T) {
	m, err := New(Config{Format: Avro, ID: "id", SchemaFile: write(t, "a.avsc", orderAvro)}, &registry{})
	require.NoError(t, err)
	if r, err := m.Read(t.Context(), &serving.StreamRecord{Value: encodeAvro(t, orderAvro, avroOrder())}); err != nil || r.ID != "7" {
		t.Errorf("%+v, %v", r, err)
	}
}
