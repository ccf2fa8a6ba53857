package window

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// backlogFresh is for how many seconds it counts what a process said of a stream.
	backlogFresh = 5
	// backlogTrend is for how many seconds at least, and twice that at most, a change of a backlog is
	// looked at: lags are read every few seconds.
	backlogTrend = 10
)

// Backlog is what waits for a model version in streams.
type Backlog struct {
	Stream   string        // that most waits in; empty: nothing waits in any
	Records  float64       // that wait in all of them
	CatchUp  time.Duration // of that stream: in which what waits is to be worked off
	Wanted   float64       // records a second that work it off in the times that the streams have
	Growth   float64       // records a second by which it has become more; below 0: less
	Answered float64       // records a second that the streams answered within the stable window
}

// waits is what waits for a version in one stream, by the second.
type waits struct {
	cells  [span]waiting
	newest int64
}

type waiting struct {
	second            int64
	records, answered float64
	catchUp           time.Duration
}

func (s *series) addBacklog(second int64, b *serving.Backlog) {
	if s.backlogs == nil {
		s.backlogs = map[string]*waits{}
	}
	w := s.backlogs[b.Stream]
	if w == nil {
		w = &waits{}
		s.backlogs[b.Stream] = w
	}
	c := &w.cells[second%span]
	if c.second != second {
		*c = waiting{second: second}
	}
	c.records = max(c.records, float64(b.Records))
	c.answered += float64(b.Answered)
	c.catchUp = b.CatchUp
	s.newest, w.newest = max(s.newest, second), max(w.newest, second)
}

// backlog is what waits at a second, and what was answered in those seconds of the stable window that are
// known. What was not reported for long is forgotten.
func (s *series) backlog(now int64, known func(second int64) bool) (all Backlog) {
	most := 0.
	for stream, w := range s.backlogs {
		if w.newest <= now-span {
			delete(s.backlogs, stream)
			continue
		}
		all.Answered += w.rate(now, known)
		c, ok := w.at(now, now-backlogFresh)
		if !ok || c.records == 0 {
			continue
		}
		all.Records += c.records
		all.Wanted += c.records / max(c.catchUp.Seconds(), 1)
		if before, ok := w.at(c.second-backlogTrend, c.second-2*backlogTrend); ok {
			all.Growth += (c.records - before.records) / float64(c.second-before.second)
		}
		if c.records > most || c.records == most && stream < all.Stream {
			most, all.Stream, all.CatchUp = c.records, stream, c.catchUp
		}
	}
	return all
}

// at is the newest report of a second up to one, and after another.
func (w *waits) at(newest, after int64) (c waiting, ok bool) {
	for second := newest; second > after && second > 0; second-- {
		if c = w.cells[second%span]; c.second == second {
			return c, true
		}
	}
	return waiting{}, false
}

// rate is how many records a second were answered.
func (w *waits) rate(now int64, known func(second int64) bool) float64 {
	answered, seconds := 0., 0
	for second := now; second > now-int64(Stable/time.Second); second-- {
		if !known(second) {
			continue
		}
		seconds++
		if c := w.cells[second%span]; c.second == second {
			answered += c.answered
		}
	}
	return answered / float64(max(seconds, 1))
}
