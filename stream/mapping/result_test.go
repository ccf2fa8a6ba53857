package mapping

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestResults(t *testing.T) {
	const prediction, output = `{"uuid":"7","output":5.0,"default":false,"model":"m","confidence":0.5}`, `5.0`
	scored := `{"type": "record", "name": "Scored", "fields": [{"name": "id", "type": "long"}, {"name": "score", "type": "double"}, {"name": "model", "type": ["null", "string"], "default": null},
		{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}`
	records := map[Format]*Record{}
	for format, one := range map[Format]struct {
		cfg   Config
		value string
	}{
		JSON:     {Config{Format: JSON}, ` {"b": 1.50, "a": "<"} `},
		Avro:     {Config{Format: Avro, SchemaFile: write(t, "a.avsc", orderAvro)}, string(encodeAvro(t, orderAvro, avroOrder()))},
		Protobuf: {Config{Format: Protobuf, SchemaFile: orderProto, Message: "shop.v1.Order"}, string(orderMessage(t, `{"id": "7", "items": [{"price": 1.5}]}`))},
	} {
		m, err := New(one.cfg, nil)
		require.NoError(t, err)
		if records[format], err = m.Read(t.Context(), &serving.StreamRecord{Stream: "s", Place: "0/0", Value: []byte(one.value)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, one := range []struct {
		record Format
		cfg    ResultConfig
		want   string // JSON of the result
		wrong  string
	}{
		{JSON, ResultConfig{Value: Prediction, Format: JSON}, prediction, ""},
		{JSON, ResultConfig{Value: OutputOnly, Format: JSON}, output, ""},
		{JSON, ResultConfig{Value: WithRecord, Format: JSON}, `{"b": 1.50, "a": "<","prediction":{"confidence":0.5,"default":false,"model":"m","output":5.0,"uuid":"7"}}`, ""},
		{JSON, ResultConfig{Value: WithRecord, Format: JSON, Add: map[string]string{"b": "output", "c": "missing"}}, `{"a":"<","b":5.0,"c":null}`, ""},
		{Avro, ResultConfig{Value: WithRecord, Format: JSON, Add: map[string]string{"score": "output"}},
			`{"amount":12.34,"at":"2026-05-04T03:02:01Z","customer":{"name":"ann"},"features":[1.5,"Infinity"],"id":7,"new":true,"photo":"AAE=","price":2.5,"score":5.0}`, ""},
		{Avro, ResultConfig{Value: WithRecord, Format: Avro, SchemaFile: write(t, "s.avsc", scored), Add: map[string]string{"score": "output", "model": "model"}},
			`{"amount":12.34,"at":"2026-05-04T03:02:01Z","id":7,"model":"m","score":5}`, ""},
		{Avro, ResultConfig{Value: WithRecord, Format: Avro, SchemaFile: write(t, "s.avsc", scored), Add: map[string]string{"score": "model"}}, "", "score"},
		{Avro, ResultConfig{Value: OutputOnly, Format: Avro, SchemaFile: write(t, "o.avsc", `"double"`)}, "5", ""},
		{JSON, ResultConfig{Value: Prediction, Format: Avro, SchemaFile: write(t, "p.avsc", `{"type": "record", "name": "P", "fields": [{"name": "uuid", "type": "string"}, {"name": "output", "type": "double"}]}`)}, `{"output":5,"uuid":"7"}`, ""},
		{Protobuf, ResultConfig{Value: WithRecord, Format: Protobuf, SchemaFile: orderProto, Message: "shop.v1.Scored", Add: map[string]string{"score": "output"}},
			`{"id":"7","items":[{"features":[],"price":1.5}],"score":5}`, ""},
		{Protobuf, ResultConfig{Value: Prediction, Format: Protobuf, SchemaFile: orderProto, Message: "shop.v1.Scored.Prediction"}, `{"model":"m","score":0}`, ""},
		{Protobuf, ResultConfig{Value: OutputOnly, Format: Protobuf, SchemaFile: orderProto, Message: "shop.v1.Scored"}, "", "unexpected token"},
	} {
		w, err := NewWriter(one.cfg, one.record, nil)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		got, err := w.Write("out", records[one.record], []byte(prediction), []byte(output))
		if one.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), one.wrong) {
				t.Errorf("%d: %q, %v, want %s", i, got, err, one.wrong)
			}
			continue
		}
		text := got
		if err == nil && w.codec != nil {
			tree, err := w.codec.decode(got)
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			text, _ = appendJSON(nil, tree)
		}
		if err != nil || string(text) != one.want {
			t.Errorf("%d: %s, %v, want %s", i, text, err, one.want)
		}
	}
}
