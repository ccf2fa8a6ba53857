package state

import "github.com/topsail-serving/topsail/internal/obs"

type metrics struct {
	loads, loadFailures, swaps, conflicts, corrupt, misfits obs.Counter
}

func newMetrics(r *obs.Registry, s *States) *metrics {
	r.GaugeFunc("topsail_selection_state_entries", "Selection states in the gateway's memory.", func() float64 { return float64(s.entries.EstimatedSize()) })
	r.GaugeFunc("topsail_selection_state_stale", "1 while selection states cannot be read and apps continue with the states in memory.", s.stale)
	return &metrics{
		loads:        r.Counters("topsail_selection_state_loads_total", "Reads of selection states from the store.").WithLabelValues(),
		loadFailures: r.Counters("topsail_selection_state_load_failures_total", "Failed reads of selection states.").WithLabelValues(),
		swaps:        r.Counters("topsail_selection_state_swaps_total", "Selection states that were replaced in the store.").WithLabelValues(),
		conflicts:    r.Counters("topsail_selection_state_conflicts_total", "Selection states that had changed before they could be replaced, and were trained again.").WithLabelValues(),
		corrupt:      CountCorrupt(r),
		misfits:      r.Counters("topsail_selection_state_mismatches_total", "Selection states that the policy could not take the app's models into; the app uses a fresh one.").WithLabelValues(),
	}
}

// CountCorrupt counts states that were corrupt, for all that read them in a process.
func CountCorrupt(r *obs.Registry) obs.Counter {
	return r.SharedCounters("topsail_selection_state_corrupt_total", "Stored selection states that were corrupt and set aside.").WithLabelValues()
}

func (s *States) stale() float64 {
	if s.unreachable.Load() {
		return 1
	}
	return 0
}
