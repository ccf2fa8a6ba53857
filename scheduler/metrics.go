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
	r.Add(b.writeSeries, leaderDesc, unknownDesc, jobsDesc, heldDesc, desiredDesc, readyDesc, demandDesc, canDesc, problemDesc, blockedDesc, alarmDesc)
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

// writeSeries writes what the board says now.
func (b *board) writeSeries(to *obs.SeriesWriter) {
	now := time.Now()
	for _, s := range b.all() {
		if !s.Active {
			continue // there may be thousands that are registered alone
		}
		to.Gauge(desiredDesc, float64(s.Decision.To), s.Model, s.Version)
		to.Gauge(readyDesc, float64(s.Ready), s.Model, s.Version)
		if s.Load.DemandKnown {
			to.Gauge(demandDesc, s.Load.Demand, s.Model, s.Version)
		}
		if s.Load.CapacityKnown {
			to.Gauge(canDesc, s.Load.Capacity, s.Model, s.Version)
		}
		to.Flag(problemDesc, s.Job.Problem != "", s.Model, s.Version)
		to.Gauge(blockedDesc, since(s.Blocked, now), s.Model, s.Version)
		to.Flag(alarmDesc, s.Alarm != "", s.Model, s.Version)
	}
	h := b.head()
	to.Flag(leaderDesc, h.leading)
	to.Gauge(unknownDesc, since(h.unknown, now))
	to.Gauge(jobsDesc, since(h.jobs, now))
	to.Flag(heldDesc, h.held)
}

// since is for how many seconds something has been so; 0 where it has not.
func since(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, now.Sub(t).Seconds())
}
