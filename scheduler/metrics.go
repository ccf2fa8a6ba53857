package scheduler

import (
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
)

// metrics are those of a scheduler. What there is for each version is read from
// the board, so that it goes with the version.
type metrics struct {
	tick       obs.Histogram
	decisions  *obs.CounterVec
	unrecorded obs.Counter
}

func newMetrics(r *obs.Registry, b *board) *metrics {
	r.Collect(gauges{b})
	return &metrics{
		tick:       r.Histograms("topsail_scheduler_tick_seconds", "Time from reading demand and jobs to the decisions.", obs.Seconds()).WithLabelValues(),
		decisions:  r.Counters("topsail_scheduler_decisions_total", "Decisions that requested a change, by rule and outcome.", "rule", "outcome"),
		unrecorded: r.Counters("topsail_scheduler_unrecorded_total", "Decisions that could not be written to a journal.").WithLabelValues(),
	}
}

var (
	leaderDesc  = obs.NewDesc("topsail_scheduler_leader", "1 while this scheduler leads.")
	unknownDesc = obs.NewDesc("topsail_scheduler_demand_unknown_seconds", "How long the demand has been unknown; 0 while it is known.")
	jobsDesc    = obs.NewDesc("topsail_scheduler_jobs_age_seconds", "How old the list of jobs is.")
	heldDesc    = obs.NewDesc("topsail_scheduler_removals_held", "1 while jobs are not removed because they are most of all jobs.")
	desiredDesc = obs.NewDesc("topsail_scheduler_desired_replicas", "Wanted replicas of the version.", "model", "version")
	readyDesc   = obs.NewDesc("topsail_scheduler_ready_replicas", "Replicas that are ready.", "model", "version")
	demandDesc  = obs.NewDesc("topsail_scheduler_demand", "Queries a second that the last decision about the version was based on; absent while unknown.", "model", "version")
	canDesc     = obs.NewDesc("topsail_scheduler_capacity", "Queries a second that the ready replicas of the version can answer within the objective; absent while unknown.", "model", "version")
	problemDesc = obs.NewDesc("topsail_scheduler_job_problem", "1 while fewer replicas run than requested, for a reason that is in the log.", "model", "version")
	blockedDesc = obs.NewDesc("topsail_scheduler_blocked_seconds", "How long a wanted change has been blocked; 0 while none is.", "model", "version")
	alarmDesc   = obs.NewDesc("topsail_scheduler_alarm", "1 while an operator should look at the version's job.", "model", "version")
)

// gauges reads the board when metrics are asked for.
type gauges struct{ *board }

// Describe and Collect implement obs.Collector.
func (g gauges) Describe(ch chan<- *obs.Desc) {
	for _, d := range []*obs.Desc{leaderDesc, unknownDesc, jobsDesc, heldDesc, desiredDesc, readyDesc, demandDesc, canDesc, problemDesc, blockedDesc, alarmDesc} {
		ch <- d
	}
}

func (g gauges) Collect(ch chan<- obs.Metric) {
	now := time.Now()
	gauge := func(d *obs.Desc, v float64, labels ...string) {
		// Names that cannot be labels are left out.
		if m, err := obs.GaugeOf(d, v, labels...); err == nil {
			ch <- m
		}
	}
	for _, s := range g.all() {
		if !s.Active {
			continue // there may be thousands that are registered alone
		}
		gauge(desiredDesc, float64(s.Decision.To), s.Model, s.Version)
		gauge(readyDesc, float64(s.Ready), s.Model, s.Version)
		if s.Load.DemandKnown {
			gauge(demandDesc, s.Load.Demand, s.Model, s.Version)
		}
		if s.Load.CapacityKnown {
			gauge(canDesc, s.Load.Capacity, s.Model, s.Version)
		}
		gauge(problemDesc, flag(s.Job.Problem != ""), s.Model, s.Version)
		gauge(blockedDesc, since(s.Blocked, now), s.Model, s.Version)
		gauge(alarmDesc, flag(s.Alarm != ""), s.Model, s.Version)
	}
	h := g.head()
	gauge(leaderDesc, flag(h.leading))
	gauge(unknownDesc, since(h.unknown, now))
	gauge(jobsDesc, since(h.jobs, now))
	gauge(heldDesc, flag(h.held))
}

// since is for how many seconds something has been so; 0 where it has not.
func since(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, now.Sub(t).Seconds())
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
