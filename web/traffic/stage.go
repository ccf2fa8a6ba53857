package traffic

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// What is kept of a stage's past: its sums at each look, or nearly so, for two minutes,
// and then one of each minute. That is some 15 KB for a stage of a replica that is asked
// all the time.
const (
	stageOften  = 9 * time.Second // a little less than there is between two looks at a sidecar
	stageRecent = 2 * time.Minute
	stageSeldom = time.Minute
	stageSpan   = 15 * time.Minute
)

// stage is what a sidecar has measured of one stage of a replica's pipeline.
type stage struct {
	there                   bool // it is one of the pipeline's that runs now
	position                int
	after                   []string
	workers, ready, waiting int
	read                    *sums    // since the sidecar started
	sums                    *sums    // since it was first read
	past                    []moment // the sums at earlier looks, the oldest first
}

// moment is the sums at a time.
type moment struct {
	at time.Time
	*sums
}

// sums are what came of batches and of the inputs in them. They only grow, and are never changed once they are kept.
type sums struct {
	ended           map[string]float64 // inputs by status; those that there are
	batches, inputs float64            // batches, and inputs in them
	wait, run       timing             // of inputs, and of batches
}

// timing is how long things took.
type timing struct {
	histogram
	seconds float64
}

// stage finds or makes a stage; nil where there are too many.
func (m *measures) stage(name string) *stage {
	s := m.stages[name]
	if s == nil && name != "" && len(m.stages) < serving.MaxStages {
		if m.stages == nil {
			m.stages = map[string]*stage{}
		}
		s = &stage{read: &sums{ended: map[string]float64{}}}
		m.stages[name] = s
	}
	return s
}

func (st *stage) readInputs(s *obs.Series) {
	if n := number(s.Value); n > 0 {
		st.read.ended[s.Label("status")] = n
	}
}

// readPlace reads how many workers there should be, and where the stage stands.
func (st *stage) readPlace(s *obs.Series) {
	st.workers = count(s)
	if position, err := strconv.Atoi(s.Label("position")); err == nil {
		st.position = position
	}
	if after := s.Label("after"); after != "" {
		st.after = strings.Split(after, ",")
	}
}

// readSizes reads the sizes of batches.
func (s *sums) readSizes(from *obs.Series) {
	s.batches, s.inputs = float64(from.Count()), number(from.Sum)
}

func readTiming(s *obs.Series) timing {
	h, ok := readHistogram(s)
	if !ok {
		return timing{}
	}
	return timing{h, number(s.Sum)}
}

// follow adds what came since the look before, of which the stage is nil where there
// was none.
func (st *stage) follow(before *stage, at time.Time) {
	if before == nil {
		st.sums = &sums{}
		st.past = []moment{{at, st.sums}}
		return
	}
	st.sums, st.past = before.sums, before.past
	if came := st.read.since(before.read); !came.empty() {
		st.sums = st.sums.plus(came)
	}
	if last := st.past[len(st.past)-1]; at.Sub(last.at) >= stageOften {
		st.past = thinned(append(slices.Clip(st.past), moment{at, st.sums}), at)
	}
}

// thinned leaves of the past what is worth keeping at a time.
func thinned(past []moment, now time.Time) []moment {
	kept := past[:0]
	for i, m := range past {
		beyond := i+1 < len(past) && now.Sub(past[i+1].at) >= stageSpan // the next one is old enough
		recent := now.Sub(m.at) <= stageRecent
		if !beyond && (recent || len(kept) == 0 || m.at.Sub(kept[len(kept)-1].at) >= stageSeldom) {
			kept = append(kept, m)
		}
	}
	return kept
}

// within is what the stage did in a window up to a time, and how many seconds that was:
// no fewer than the window has, where so much is known.
func (st *stage) within(window time.Duration, now time.Time) (*sums, float64) {
	from := st.past[0]
	for _, m := range st.past[1:] {
		if now.Sub(m.at) < window {
			break
		}
		from = m
	}
	return st.sums.since(from.sums), now.Sub(from.at).Seconds()
}

// since is what was counted after before. A sidecar that started anew counts from nothing.
func (s *sums) since(before *sums) *sums {
	if s.anew(before) {
		return s
	}
	d := &sums{
		ended: maps.Clone(s.ended), batches: s.batches - before.batches, inputs: s.inputs - before.inputs,
		wait: s.wait.since(before.wait), run: s.run.since(before.run),
	}
	for status, n := range before.ended {
		if d.ended[status] -= n; d.ended[status] == 0 {
			delete(d.ended, status)
		}
	}
	return d
}

func (t timing) since(before timing) timing {
	came, ok := t.histogram.since(before.histogram)
	if !ok {
		return t
	}
	return timing{came, t.seconds - before.seconds}
}

// anew says whether anything that only grows has become less.
func (s *sums) anew(before *sums) bool {
	for status, n := range before.ended {
		if s.ended[status] < n {
			return true
		}
	}
	return s.batches < before.batches || s.inputs < before.inputs || s.wait.less(before.wait) || s.run.less(before.run)
}

func (t timing) less(before timing) bool {
	return t.seconds < before.seconds || t.histogram.less(before.histogram)
}

func (s *sums) empty() bool {
	return len(s.ended) == 0 && s.batches == 0 && s.wait.total() == 0
}

func (s *sums) plus(d *sums) *sums {
	sum := &sums{ended: maps.Clone(s.ended)}
	sum.wait.add(s.wait)
	sum.run.add(s.run)
	sum.batches, sum.inputs = s.batches, s.inputs
	sum.add(d)
	return sum
}

// add adds to sums that are not shared yet.
func (s *sums) add(d *sums) {
	if s.ended == nil {
		s.ended = map[string]float64{}
	}
	for status, n := range d.ended {
		s.ended[status] += n
	}
	s.batches += d.batches
	s.inputs += d.inputs
	s.wait.add(d.wait)
	s.run.add(d.run)
}

func (t *timing) add(d timing) {
	t.histogram = t.plus(d.histogram)
	t.seconds += d.seconds
}
