package redisstore

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestRecordsContract(t *testing.T) {
	contract.Records(t, func(t *testing.T) func() contract.RecordStore {
		cfg := config(t)
		return func() contract.RecordStore { return open(t, cfg) }
	})
}

func someRecord(id int64) *serving.Record {
	return &serving.Record{
		QueryID: id, App: "a", User: "u", InputType: serving.Doubles, InputHash: serving.InputHash{byte(id), byte(id >> 8)},
		At: time.Now(), Expires: time.Now().Add(time.Hour), Output: json.RawMessage("1.0"),
		Asked: []serving.RecordedAsk{{ModelID: serving.ModelID{Model: "m", Version: "1"}, Probability: 0.5, Output: json.RawMessage("1.0")}},
	}
}

// TestRecordsExpire leaves nothing in Redis for good.
func TestRecordsExpire(t *testing.T) {
	l := newLearner(t)
	r := someRecord(7)
	require.NoError(t, errors.Join(l.PutRecords(t.Context(), []*serving.Record{r}), l.MarkLearned(t.Context(), "a", 7)))
	l.wantTTL(l.keys.record("a", 7), time.Hour)
	l.wantTTL(l.keys.newest("a", answeredBy("u", "", r.InputHash).slot()), time.Hour)
	l.wantTTL(l.keys.learned("a", 7), learnedFor)
}

// TestOddRecords has something in place of records, or of a newest one's id.
func TestOddRecords(t *testing.T) {
	l := newLearner(t)
	r := someRecord(7)
	record, newest := l.keys.record("a", 7), l.keys.newest("a", answeredBy("u", "", r.InputHash).slot())
	for _, text := range []string{"", "{", "[]", "null", `{"query_id":8,"app":"YQ=="}`, `{"query_id":7,"app":"Yg=="}`} {
		l.redis.Set(t.Context(), record, text, time.Hour)
		if got, err := l.RecordOf(t.Context(), "a", 7); !errors.Is(err, serving.ErrNoRecord) || got != nil {
			t.Errorf("%s: got %v and error %v", text, got, err)
		}
	}
	require.NoError(t, l.PutRecords(t.Context(), []*serving.Record{r}))
	by := answeredBy("u", "", r.InputHash).text()
	for _, text := range []string{"", by, by + " ", by + " x", by + " 8", strings.Repeat("0", 32) + " 7", by + " 7 "} {
		l.redis.Set(t.Context(), newest, text, time.Hour)
		if got, err := l.NewestRecord(t.Context(), "a", "u", "", r.InputHash); !errors.Is(err, serving.ErrNoRecord) || got != nil {
			t.Errorf("%s: got %v and error %v", text, got, err)
		}
	}
}

// TestBadOutput does not keep out the other records.
func TestBadOutput(t *testing.T) {
	l := newLearner(t)
	bad, good := someRecord(1), someRecord(2)
	bad.Output = json.RawMessage("{")
	if err := l.PutRecords(t.Context(), []*serving.Record{bad, good}); err == nil || !strings.Contains(err.Error(), "query 1") {
		t.Errorf("got error %v", err)
	}
	if _, err := l.RecordOf(t.Context(), "a", 2); err != nil {
		t.Error(err)
	}
}

// FuzzDecodeRecord: what can be decoded is encoded and decoded to the same.
func FuzzDecodeRecord(f *testing.F) {
	text, err := encodeRecord(someRecord(7))
	require.NoError(f, err)
	f.Add(string(text))
	f.Add(`{"query_id":-1,"user":"/w==","input_type":"bytes","asked":null,"output":"<&>"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := decodeRecord(text)
		if err != nil {
			return
		}
		again, err := encodeRecord(r)
		if err != nil {
			return // an input type or a time that cannot be written, or too large
		}
		same, err := decodeRecord(string(again))
		require.NoError(t, err)
		if bounded, _ := r.Bounded(); bounded == r && same.QueryID != r.QueryID || same.User != r.User || same.InputHash != r.InputHash || len(same.Asked) != len(r.Asked) {
			t.Errorf("got %+v, want %+v", same, r)
		}
	})
}

// TestEncodeRecord keeps all there is in a record.
func TestEncodeRecord(t *testing.T) {
	want := someRecord(7)
	want.User, want.Context, want.App, want.Input = "\xff", "\x00", "\xfe", []byte{1, 0xff}
	want.At, want.Expires = want.At.UTC().Round(0), want.Expires.UTC().Round(0)
	text, err := encodeRecord(want)
	require.NoError(t, err)
	if got, err := decodeRecord(string(text)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
}

func BenchmarkEncodeRecord(b *testing.B) {
	r := someRecord(7)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodeRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutRecords(b *testing.B) {
	s := open(b, config(b))
	var list []*serving.Record
	for i := range recordBatch {
		list = append(list, someRecord(int64(i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.PutRecords(b.Context(), list))
	}
}
