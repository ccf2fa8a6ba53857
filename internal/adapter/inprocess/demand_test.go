package inprocess

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestDemandContract(t *testing.T) {
	contract.Demand(t, func(*testing.T) contract.DemandStore { return NewDemand() })
}

// TestDemandIsBounded keeps the newest reports.
func TestDemandIsBounded(t *testing.T) {
	d, base := NewDemand(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3*demandReports + 7 {
		d.WriteDemand(serving.DemandReport{Second: base.Add(time.Duration(i) * time.Second)})
	}
	list, err := d.ReadDemand(t.Context(), base, base.Add(time.Hour*24*365))
	require.NoError(t, err)
	if len(list) != demandReports || len(d.ring) != demandReports {
		t.Fatalf("%d reports are kept, want %d", len(list), demandReports)
	}
	for i, r := range list {
		if want := base.Add(time.Duration(2*demandReports+7+i) * time.Second); !r.Second.Equal(want) {
			t.Fatalf("report %d is of %v, want %v", i, r.Second, want)
		}
	}
}

// BenchmarkReadDemand reads the last three seconds of ten minutes.
func BenchmarkReadDemand(b *testing.B) {
	d, base := NewDemand(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range demandReports {
		d.WriteDemand(serving.DemandReport{Second: base.Add(time.Duration(i) * time.Second), Demands: make([]serving.Demand, 200)})
	}
	to := base.Add(demandReports * time.Second)
	b.ReportAllocs()
	for b.Loop() {
		if list, err := d.ReadDemand(b.Context(), to.Add(-3*time.Second), to); err != nil || len(list) != 3 {
			b.Fatal(len(list), err)
		}
	}
}
