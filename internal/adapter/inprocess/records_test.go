package inprocess

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestRecordsContract(t *testing.T) {
	contract.Records(t, func(*testing.T) func() contract.RecordStore {
		r := NewRecords()
		return func() contract.RecordStore { return r }
	})
}

// TestRecordsAreBounded puts more than there is room for, and lets them expire.
func TestRecordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecords()
		put := func(app string, from, to int64) {
			var list []*serving.Record
			for id := from; id < to; id++ {
				list = append(list, &serving.Record{App: app, QueryID: id, InputHash: serving.InputHash{byte(id), byte(id >> 8), byte(id >> 16)}, Expires: time.Now().Add(time.Minute)})
			}
			require.NoError(t, r.PutRecords(t.Context(), list))
		}
		const more = 1000
		put("a", 0, serving.MaxRecords+more)
		if a := r.apps["a"]; len(a.records) != serving.MaxRecords || len(a.newest) != serving.MaxRecords {
			t.Errorf("%d records and %d newest, want %d", len(a.records), len(a.newest), serving.MaxRecords)
		}
		if _, err := r.RecordOf(t.Context(), "a", more-1); err == nil {
			t.Error("the oldest are there")
		}
		if _, err := r.RecordOf(t.Context(), "a", more); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		put("b", 0, 1)
		if len(r.apps) != 1 || len(r.apps["b"].records) != 1 {
			t.Errorf("%d apps have records, want one", len(r.apps))
		}
	})
}

func BenchmarkPutRecords(b *testing.B) {
	r := NewRecords()
	list := make([]*serving.Record, 100)
	id := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range list {
			id++
			list[i] = &serving.Record{App: "a", QueryID: id, InputHash: serving.InputHash{byte(id), byte(id >> 8)}, Expires: time.Now().Add(time.Minute), Asked: make([]serving.RecordedAsk, 4)}
		}
		require.NoError(b, r.PutRecords(b.Context(), list))
	}
}
