package state

import "topsail/internal/obs"

type metrics struct {
	loads, loadFailures, swaps, conflicts, corrupt, panics obs.Counter
}

func newMetrics(r *obs.Registry, s *States) *metrics {
	counter := func(name, help string) obs.Counter {
		return r.Counters("topsail_selection_state_"+name, help).WithLabelValues()
	}
	r.GaugeFunc("topsail_selection_state_entries", "Selection states in the gateway's memory.", func() float64 { return float64(s.entries.EstimatedSize()) })
	r.GaugeFunc("topsail_selection_state_stale", "1 while selection states cannot be read and apps go on with what they know.", s.stale)
	return &metrics{
		loads:        counter("loads_total", "Readings of selection states in the store."),
		loadFailures: counter("load_failures_total", "Readings of selection states that failed."),
		swaps:        counter("swaps_total", "Selection states that were replaced in the store."),
		conflicts:    counter("conflicts_total", "Selection states that had changed before they could be replaced, and learned again."),
		corrupt:      counter("corrupt_total", "Stored selection states that were corrupt and set aside."),
		panics:       counter("misfits_total", "Selection states that the policy could not take the app's models into; the app uses a fresh one."),
	}
}

func (s *States) stale() float64 {
	if s.away.Load() {
		return 1
	}
	return 0
}
