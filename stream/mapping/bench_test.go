package mapping

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// BenchmarkRecords reads a record of each format, makes its input and adds the prediction.
func BenchmarkRecords(b *testing.B) {
	prediction, output := []byte(`{"uuid":"7","output":5.0,"default":false,"model":"m","version":"1","confidence":0.5}`), []byte(`5.0`)
	fields := []string{"price", "new", "features[0]"}
	for name, one := range map[string]struct {
		cfg   Config
		value []byte
	}{
		"json":     {Config{Format: JSON, Fields: fields, ID: "id"}, []byte(`{"id": 7, "price": 2.5, "new": true, "at": "2026-05-04T03:02:01Z", "customer": {"name": "ann"}, "features": [1.5, 2.5]}`)},
		"avro":     {Config{Format: Avro, Fields: fields, ID: "id", SchemaFile: write(b, "a.avsc", orderAvro)}, encodeAvro(b, orderAvro, avroOrder())},
		"protobuf": {Config{Format: Protobuf, Fields: []string{"items[0].price", "returning"}, ID: "id", SchemaFile: orderProto, Message: "shop.v1.Order"}, orderMessage(b, anOrder)},
	} {
		b.Run(name, func(b *testing.B) {
			m, err := New(one.cfg, nil)
			require.NoError(b, err)
			w, err := NewWriter(ResultConfig{Value: WithRecord, Format: JSON, Add: map[string]string{"score": "output"}}, one.cfg.Format, nil)
			require.NoError(b, err)
			record := &serving.StreamRecord{Stream: "s", Place: "0/0", Value: one.value}
			b.ReportAllocs()
			for b.Loop() {
				r, err := m.Read(b.Context(), record)
				if err == nil {
					_, err = r.Input(serving.Doubles, nil)
				}
				if err == nil {
					_, err = w.Write("out", r, prediction, output)
				}
				require.NoError(b, err)
			}
		})
	}
}
