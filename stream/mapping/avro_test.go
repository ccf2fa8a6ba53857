package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/require"
)

const orderAvro = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
	{"name": "id", "type": "long"}, {"name": "price", "type": "float"}, {"name": "new", "type": "boolean"},
	{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
	{"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
	{"name": "customer", "type": ["null", {"type": "record", "name": "Customer", "fields": [{"name": "name", "type": "string"}]}], "default": null},
	{"name": "features", "type": {"type": "array", "items": "double"}}, {"name": "photo", "type": "bytes"}]}`

func avroOrder() map[string]any {
	return map[string]any{
		"id": int64(7), "price": float32(2.5), "new": true, "at": time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), "amount": json.Number("12.34"),
		"customer": map[string]any{"name": "ann"}, "features": []any{1.5, math.Inf(1)}, "photo": []byte{0, 1},
	}
}

func encodeAvro(t testing.TB, schema string, v any) []byte {
	t.Helper()
	value, err := avro.MustParse(schema).Encode(v)
	require.NoError(t, err)
	return value
}

func TestAvro(t *testing.T) {
	m, err := New(Config{Format: Avro, SchemaFile: write(t, "order.avsc", orderAvro), Fields: []string{"price", "new", "amount", "features"}, ID: "id", User: "customer.name"}, nil)
	require.NoError(t, err)
	record := &serving.StreamRecord{Stream: "orders", Place: "0/1", Value: encodeAvro(t, orderAvro, avroOrder())}
	r, err := m.Read(t.Context(), record)
	if err != nil || r.ID != "7" || r.User != "ann" {
		t.Fatalf("%+v, %v", r, err)
	}
	in, err := r.Input(serving.Doubles, nil)
	var want []byte
	for _, x := range []float64{2.5, 1, 12.34, 1.5, math.Inf(1)} {
		want, _ = appendNumber(want, x, serving.Float64)
	}
	if err != nil || !bytes.Equal(in.Data, want) {
		t.Errorf("%x, %v, want %x", in.Data, err, want)
	}
	for value, want := range map[string]string{"\x0e": "does not fit its Avro schema", string(record.Value) + "more": "4 bytes are behind it"} {
		_, err := m.Read(t.Context(), &serving.StreamRecord{Value: []byte(value)})
		if rejection, is := errors.AsType[*stream.Rejection](err); !is || rejection.Reason != stream.Unreadable || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if _, err := New(Config{Format: Avro, SchemaFile: write(t, "order.avsc", "{}")}, nil); err == nil || !strings.Contains(err.Error(), "not an Avro schema") {
		t.Errorf("no schema: %v", err)
	}
}

func FuzzAvro(f *testing.F) {
	f.Add(encodeAvro(f, orderAvro, avroOrder()))
	c, err := newAvro(Schema{Text: orderAvro})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, value []byte) { again(t, c, value) })
}
