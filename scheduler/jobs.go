package scheduler

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// takeJobs takes in a list of all jobs. Most are as they were the last time, in the
// same place, and cost next to nothing.
func (l *loop) takeJobs(jobs []serving.Job, now time.Time) {
	moved := len(jobs) != len(l.jobs)
	for i := range jobs {
		job := &jobs[i]
		if i < len(l.jobs) && *job == l.jobs[i] {
			continue
		}
		moved = moved || job.ModelID != l.jobs[i].ModelID
		e := l.entry(job.ModelID, now)
		l.sayProblem(e, job)
		e.job = *job
		l.active[e.id] = e
	}
	if moved {
		l.dropJobs(jobs)
	}
	l.jobs = jobs
}

// sayProblem logs why replicas are missing when that has changed.
func (l *loop) sayProblem(e *entry, job *serving.Job) {
	switch {
	case job.Problem == e.job.Problem:
	case job.Problem != "":
		l.cfg.Log.Warn("replicas are missing", "model", e.id.String(), "want", job.Count, "running", job.Running, "problem", job.Problem)
	default:
		l.cfg.Log.Info("replicas are missing no longer", "model", e.id.String(), "running", job.Running)
	}
}

// dropJobs notes which jobs are no longer there.
func (l *loop) dropJobs(jobs []serving.Job) {
	there := make(map[serving.ModelID]bool, len(jobs))
	for _, job := range jobs {
		there[job.ModelID] = true
	}
	for _, job := range l.jobs {
		if e := l.entries[job.ModelID]; e != nil && !there[e.id] {
			e.job = serving.Job{ModelID: e.id}
			l.active[e.id] = e
		}
	}
}

// takeReplicas takes in how many replicas of which versions are ready.
func (l *loop) takeReplicas(ready map[serving.ModelID]int) {
	for id := range l.ready {
		if _, still := ready[id]; !still {
			l.setReady(id, 0)
		}
	}
	for id, n := range ready {
		l.setReady(id, n)
	}
	l.ready = ready
}

func (l *loop) setReady(id serving.ModelID, n int) {
	if e := l.entries[id]; e != nil && e.ready != n {
		e.ready = n
		l.active[id] = e
	}
}
