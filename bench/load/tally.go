package load

import (
	"bytes"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxExplanations bounds Report.Defaults; the rest is counted under "other".
const maxExplanations = 32

// tally collects a report. Its methods may be called from any goroutine.
type tally struct {
	mu       sync.Mutex // guards all below
	report   Report
	latency  *hdrhistogram.Histogram // microseconds
	lateness *hdrhistogram.Histogram // microseconds
}

func newTally() *tally {
	return &tally{
		report:   Report{Errors: map[ErrorKind]int{}, Statuses: map[int]int{}, Defaults: map[string]int{}},
		latency:  hdrhistogram.New(1, (2 * maxTime).Microseconds(), 3),
		lateness: hdrhistogram.New(1, (2 * maxTime).Microseconds(), 3),
	}
}

func (t *tally) unsent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Unsent++
}

// sent counts a request that was due while its sender was free, or became free
// later, which the generator cannot help.
func (t *tally) sent(due, free, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Sent++
	if free.After(due) {
		t.report.Queued++
		due = free
	}
	record(t.lateness, sent.Sub(due))
}

func (t *tally) failed(kind ErrorKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Errors[kind]++
}

func (t *tally) answered(reply message, latency time.Duration) {
	explanation, isDefault := findDefault(reply.body)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Answered++
	t.report.Statuses[reply.status]++
	record(t.latency, latency)
	switch {
	case isDefault:
		t.report.explain(string(explanation))
	case reply.status == 200:
		t.report.Good++
	}
}

func (r *Report) explain(explanation string) {
	if _, known := r.Defaults[explanation]; !known && len(r.Defaults) >= maxExplanations {
		explanation = "other"
	}
	r.Defaults[explanation]++
}

// findDefault says whether the reply holds a default, and its explanation as it
// is written in the JSON text.
func findDefault(body []byte) (explanation []byte, isDefault bool) {
	if !bytes.Contains(body, []byte(`"default":true`)) {
		return nil, false
	}
	_, rest, found := bytes.Cut(body, []byte(`"default_explanation":"`))
	if !found {
		return nil, true
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return rest[:i], true
		}
	}
	return rest, true
}

// finish completes the report of a run that took so long.
func (t *tally) finish(elapsed time.Duration) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	r.Elapsed = elapsed
	r.Rate = float64(r.Answered) / elapsed.Seconds()
	r.Goodput = float64(r.Good) / elapsed.Seconds()
	r.Latency, r.Lateness = quantiles(t.latency), quantiles(t.lateness)
	return r
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(max(0, d.Microseconds())) // fails only beyond twice the longest run
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	at := func(p float64) time.Duration { return time.Duration(h.ValueAtPercentile(p)) * time.Microsecond }
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(100)}
}
