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

// takeReplicas takes in how many replicas of which definitions are ready.
func (l *loop) takeReplicas(ready map[serving.Definition]int) {
	before := l.ready
	l.ready = ready
	for d := range before {
		l.setReady(d.ModelID)
	}
	for d := range ready {
		l.setReady(d.ModelID)
	}
}

// setReady counts the ready replicas of a version as it is defined now. Those that do not say what they run are taken to run
// that.
func (l *loop) setReady(id serving.ModelID) {
	e := l.entries[id]
	if e == nil {
		return
	}
	n := l.ready[serving.Definition{ModelID: id}]
	if e.version != nil && e.version.Generation != "" {
		n += l.ready[e.version.Definition()]
	}
	if e.ready != n {
		e.ready = n
		l.active[id] = e
	}
}
