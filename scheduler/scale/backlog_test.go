package scale_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler/scale"
	"github.com/topsail-serving/topsail/scheduler/window"
	"github.com/topsail-serving/topsail/serving"
)

// streaming runs the rules for a version of 10 ms that a stream asks, which two processes serve.
type streaming struct {
	spec    serving.ScaleSpec
	count   int // at the beginning
	backlog float64
	inflow  func(second int) float64 // records
	share   float64                  // of what replicas can do that the stream has them do
	start   int                      // seconds that a replica takes
	policy  float64                  // queries of the version for a record
	limit   float64                  // records a second that other versions answer; 0: any
	seconds int
}

// streamed is how a run went, second by second.
type streamed struct {
	counts   []int
	backlogs []float64
	reasons  []string
}

// turns is how often the count went another way than before.
func (o streamed) turns() (n int) {
	last := 0
	for i := 1; i < len(o.counts); i++ {
		way := o.counts[i] - o.counts[i-1]
		if way*last < 0 {
			n++
		}
		if way != 0 {
			last = way
		}
	}
	return n
}

func (s streaming) run() (o streamed) {
	const each = 100. // records a second
	line := serving.LatencyLine{PerInput: 10 * time.Millisecond}
	epoch := time.Unix(1_700_000_000, 0).UTC()
	id := serving.ModelID{Model: "m", Version: "1"}
	version := &serving.Version{ModelID: id, Scale: &s.spec}
	windows := window.New()
	job := serving.Job{ModelID: id, Count: s.count}
	ready, lag, woken := s.count, s.backlog, time.Time{}
	var starting []int
	var state scale.State
	for second := range s.seconds {
		at := epoch.Add(time.Duration(second) * time.Second)
		now := at.Add(1200 * time.Millisecond)
		s.backlog += s.inflow(second)
		answered := min(s.backlog, float64(ready)*each*s.share/s.policy)
		if s.limit > 0 {
			answered = min(answered, s.limit)
		}
		held := 0.
		if ready == 0 && s.backlog > 0 {
			woken, held = now, 1
		}
		s.backlog -= answered
		if second%5 == 0 { // as a process asks its broker
			lag = s.backlog
		}
		waits := serving.Backlog{ModelID: id, Stream: "wine", Records: uint64(lag), Answered: uint64(answered), CatchUp: 5 * time.Minute}
		one := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "one"}, Second: at, Backlogs: []serving.Backlog{waits}}
		if asked := answered * s.policy; asked+held > 0 {
			one.Demands = []serving.Demand{{ModelID: id, Arrivals: uint64(asked), Concurrency: time.Duration((asked/100 + held) * float64(time.Second))}}
		}
		waits.Answered = 0
		two := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "two"}, Second: at, Backlogs: []serving.Backlog{waits}}
		side := serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: "s"}, Second: at}
		if ready > 0 {
			side.Demands = []serving.Demand{{ModelID: id, Profile: line}}
		}
		windows.Take([]serving.DemandReport{one, two, side}, windows.From(now), now)
		var d serving.Decision
		d, state = scale.Decide(state, scale.Input{Now: now, Version: version, Role: scale.Current, SLO: 100 * time.Millisecond,
			Demand: windows.Demand(id, now), Job: job, Ready: ready, Woken: woken})
		if d.To != job.Count {
			state.Changed = now
			for range d.To - job.Count {
				starting = append(starting, second+s.start)
			}
			job.Count = d.To
		}
		for len(starting) > 0 && starting[0] <= second {
			starting, ready = starting[1:], ready+1
		}
		for ready+len(starting) > job.Count {
			if len(starting) > 0 {
				starting = starting[:len(starting)-1]
			} else {
				ready--
			}
		}
		o.counts, o.backlogs, o.reasons = append(o.counts, job.Count), append(o.backlogs, s.backlog), append(o.reasons, d.Rule+": "+d.Reason)
	}
	return o
}

func steadily(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// TestBacklogOfAnHour is worked off by all replicas that may be, though the stream cannot have them do
// all they could, and given back after it.
func TestBacklogOfAnHour(t *testing.T) {
	const rate, most = 100., 8
	for _, share := range []float64{1, 0.95, 0.6} {
		for _, count := range []int{0, 2} {
			o := streaming{
				spec: serving.ScaleSpec{Max: most}, count: count, backlog: 3600 * rate, inflow: steadily(rate), share: share, policy: 1, start: 5, seconds: 2400,
			}.run()
			reached, done := slices.Index(o.counts, most), slices.IndexFunc(o.backlogs, func(b float64) bool { return b < 10*rate })
			if reached < 0 || reached > 30 {
				t.Fatalf("share %v, from %d: the most replicas after %d s: %v", share, count, reached, o.counts[:40])
			}
			full := 3600 * rate / (most*100*share - rate) // seconds
			if done < 0 || float64(done) > 1.1*full+20 {
				t.Fatalf("share %v, from %d: worked off after %d s, by all replicas it takes %.0f s", share, count, done, full)
			}
			if slices.Min(o.counts[reached:done]) < most {
				t.Errorf("share %v, from %d: fewer replicas before the backlog is worked off: %v", share, count, o.counts[reached:done])
			}
			if !strings.Contains(o.reasons[reached], "at most 8; backlog of stream wine: ") || !strings.Contains(o.reasons[reached], " records, to be worked off in 5m0s: ") {
				t.Errorf("the reason is %q", o.reasons[reached])
			}
			after := o.counts[min(done+300, len(o.counts)-1):]
			if want := 2 + int(1-share*share); slices.Max(after) > want+1 || slices.Min(after) != slices.Max(after) {
				t.Errorf("share %v, from %d: five minutes later there are %d to %d replicas", share, count, slices.Min(after), slices.Max(after))
			}
			if o.turns() > 1 {
				t.Errorf("share %v, from %d: it goes to and fro %d times", share, count, o.turns())
			}
		}
	}
}

// TestBacklogOfAFewRecords asks for hardly more than what comes.
func TestBacklogOfAFewRecords(t *testing.T) {
	o := streaming{spec: serving.ScaleSpec{Min: 1, Max: 8}, count: 3, backlog: 1500, inflow: steadily(100), share: 0.6, policy: 1, seconds: 600}.run()
	if slices.Max(o.counts) > 3 {
		t.Errorf("1500 records, which may take 5 min, get %d replicas", slices.Max(o.counts))
	}
	if o.backlogs[300] > 0 {
		t.Errorf("%.0f records are left", o.backlogs[300])
	}
}

// TestBacklogThatGrows has more come than the stream answers though its replicas are not busy to the
// limit.
func TestBacklogThatGrows(t *testing.T) {
	o := streaming{
		spec: serving.ScaleSpec{Min: 1, Max: 20}, count: 1, share: 0.8, policy: 1, start: 5, seconds: 900,
		inflow: func(second int) float64 {
			if second < 100 {
				return 30
			}
			return 500
		},
	}.run()
	if n := o.counts[140]; n < 8 {
		t.Errorf("40 s later there are %d replicas: %v", n, o.counts[100:141])
	}
	if o.backlogs[400] > 0 || o.turns() > 1 {
		t.Errorf("after 5 min %.0f records wait, and the count went to and fro %d times", o.backlogs[400], o.turns())
	}
}

// TestBacklogOfAVersionThatIsAskedLittle, as by a canary or behind a cache, counts for what is asked.
func TestBacklogOfAVersionThatIsAskedLittle(t *testing.T) {
	o := streaming{spec: serving.ScaleSpec{Min: 1, Max: 20}, count: 1, backlog: 360_000, inflow: steadily(100), share: 1, policy: 0.05, limit: 400, seconds: 600}.run()
	if n := slices.Max(o.counts); n > 2 {
		t.Errorf("a version that is asked for one of 20 records gets %d replicas", n)
	}
}

// TestARecordWakes a version from zero, which goes back when no other comes.
func TestARecordWakes(t *testing.T) {
	o := streaming{
		spec: serving.ScaleSpec{Max: 8}, share: 1, policy: 1, start: 5, seconds: 300,
		inflow: func(second int) float64 {
			if second == 100 {
				return 1
			}
			return 0
		},
	}.run()
	if o.counts[99] != 0 || o.counts[101] != 1 || slices.Max(o.counts) != 1 || o.counts[180] != 0 || o.turns() != 1 {
		t.Errorf("the counts are %v", o.counts)
	}
	if o.backlogs[120] != 0 {
		t.Error("the record has no answer")
	}
}

// TestABacklogThatIsNotAsked for, because its stream cannot, keeps no replicas.
func TestABacklogThatIsNotAsked(t *testing.T) {
	o := streaming{spec: serving.ScaleSpec{Min: 1, Max: 8}, count: 4, backlog: 10_000, inflow: steadily(0), share: 0, policy: 1, seconds: 400}.run()
	if n := o.counts[399]; n != 1 {
		t.Errorf("%d replicas wait for a stream", n)
	}
}
