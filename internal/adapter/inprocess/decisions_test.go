package inprocess

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestDecisionsContract(t *testing.T) {
	contract.Decisions(t, func(*testing.T) contract.DecisionStore { return NewDecisions() })
}

// TestDecisionsAreBounded keeps the newest, wherever the ring begins.
func TestDecisionsAreBounded(t *testing.T) {
	d := NewDecisions()
	for i := range 2*keptDecisions + 7 {
		require.NoError(t, d.AddDecision(t.Context(), serving.Decision{To: i}))
		got, err := d.Decisions(t.Context(), 2*keptDecisions, serving.ModelID{})
		if err != nil || len(got) != min(i+1, keptDecisions) || got[0].To != i || got[len(got)-1].To != max(0, i+1-keptDecisions) {
			t.Fatalf("after %d: %d from %+v to %+v, error %v", i+1, len(got), got[0], got[len(got)-1], err)
		}
	}
}
