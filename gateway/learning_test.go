package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Who reads what was learned, and finds it damaged, raises the alarm that a query raises,
// beside the gateway's own in the same process.
func TestADamagedStateRaisesTheAlarmWhenItIsRead(t *testing.T) {
	store, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer store.Close()
	spec := &serving.App{Name: "digits", Policy: serving.PolicySpec{Kind: serving.PolicyExp3}}
	cat := &serving.Catalog{Apps: map[string]*serving.App{"digits": spec}}
	key := serving.StateKey{App: "digits", Kind: serving.PolicyExp3}
	if _, err := store.SwapState(t.Context(), key, 0, []byte(`{"kind":"ucb1"}`)); err != nil {
		t.Fatal(err)
	}
	var journal bytes.Buffer
	log, metrics := slog.New(slog.NewTextHandler(&journal, nil)), obs.NewRegistry()
	state.New(store, log, metrics) // the gateway's
	states := state.ForReading(store, log, state.CountCorrupt(metrics))
	if l, err := Learned(t.Context(), states, cat, "digits", "", ""); err != nil || l.Steps != 0 {
		t.Errorf("it learned %+v, %v", l, err)
	}
	if text := journal.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "digits") {
		t.Errorf("the log is %q", text)
	}
	families, err := metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "topsail_selection_state_corrupt_total" && f.GetMetric()[0].GetCounter().GetValue() == 1 {
			return
		}
	}
	t.Error("it was not counted")
}
