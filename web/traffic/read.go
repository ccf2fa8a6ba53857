package traffic

import (
	"maps"
	"slices"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// row says of which processes a metric is read, beside those in local mode, and which field of which
// tally a series of it is.
type row struct {
	of   Role
	read func(*look, *obs.Series)
}

// table is all that is read of a process, by the names of metrics.
var table = map[string]row{
	"topsail_gateway_answers_total":     {Gateway, ofApp((*tally).readAnswers)},
	"topsail_gateway_cache_total":       {Gateway, ofApp((*tally).readCache)},
	"topsail_gateway_objective_seconds": {Gateway, ofApp(func(t *tally, s *obs.Series) { t.objective = seconds(s.Value) })},
	"topsail_gateway_query_seconds":     {Gateway, (*look).readTook},
	"topsail_selection_models_total":    {Gateway, ofApp((*tally).readModels)},

	"topsail_gateway_failover":         {Gateway, (*look).readFailover},
	"topsail_selection_withdrawn":      {Gateway, (*look).readWithdrawn},
	"topsail_stream_lag_records":       {Gateway, ofStream(readLag)},
	"topsail_stream_waiting_seconds":   {Gateway, ofStream(readWaiting)},
	"topsail_stream_condition":         {Gateway, ofStream(readCondition)},
	"topsail_model_stream_lag_records": {Gateway, ofStream(readLag)},
	"topsail_model_stream_condition":   {Gateway, ofStream(readCondition)},

	"topsail_scheduler_leader":                 {Scheduler, func(l *look, s *obs.Series) { l.leads = l.leads || s.Value == 1 }},
	"topsail_scheduler_demand_unknown_seconds": {Scheduler, func(l *look, s *obs.Series) { l.leadership.unknown = number(s.Value) }},
	"topsail_scheduler_desired_replicas":       {Scheduler, ofPool(func(p *pool, s *obs.Series) { p.Desired = count(s) })},
	"topsail_scheduler_ready_replicas":         {Scheduler, ofPool(func(p *pool, s *obs.Series) { p.Ready = count(s) })},
	"topsail_scheduler_demand":                 {Scheduler, ofPool((*pool).readDemand)},
	"topsail_scheduler_capacity":               {Scheduler, ofPool((*pool).readCapacity)},
	"topsail_scheduler_blocked_seconds":        {Scheduler, ofPool(func(p *pool, s *obs.Series) { p.Blocked = number(s.Value) })},
	"topsail_scheduler_job_problem":            {Scheduler, ofPool(func(p *pool, s *obs.Series) { p.Problem = number(s.Value) > 0 })},
	"topsail_scheduler_alarm":                  {Scheduler, ofPool(func(p *pool, s *obs.Series) { p.Alarm = number(s.Value) > 0 })},

	"topsail_sidecar_queue_length":       {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.queue = count(s) })},
	"topsail_sidecar_containers_ready":   {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.ready = count(s) > 0 })},
	"topsail_sidecar_wait_seconds":       {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.wait = seconds(s.Value) })},
	"topsail_sidecar_batch_limit":        {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.limit = max(m.limit, count(s)) })},
	"topsail_sidecar_batch_size":         {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.readSizes(s) })},
	"topsail_sidecar_batch_seconds":      {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.run = readTiming(s) })},
	"topsail_sidecar_answers_total":      {Sidecar, ofReplica((*measures).readAnswers)},
	"topsail_sidecar_profile_seconds":    {Sidecar, ofReplica((*measures).readProfile)},
	"topsail_sidecar_start_time_seconds": {Sidecar, ofReplica(func(m *measures, s *obs.Series) { m.readStart(s) })},

	"topsail_stage_inputs_total":  {Sidecar, ofStage((*stage).readInputs)},
	"topsail_stage_batch_size":    {Sidecar, ofStage(func(st *stage, s *obs.Series) { st.read.readSizes(s) })},
	"topsail_stage_batch_seconds": {Sidecar, ofStage(func(st *stage, s *obs.Series) { st.read.run = readTiming(s) })},
	"topsail_stage_queue_seconds": {Sidecar, ofStage(func(st *stage, s *obs.Series) { st.read.wait = readTiming(s) })},
	"topsail_stage_queue_length":  {Sidecar, ofStage(func(st *stage, s *obs.Series) { st.waiting = count(s) })},
	"topsail_stage_workers_ready": {Sidecar, ofStage(func(st *stage, s *obs.Series) { st.there, st.ready = true, count(s) })},
	"topsail_stage_workers":       {Sidecar, ofStage((*stage).readPlace)},
}

// names are the metrics that are read.
func names() []string { return slices.Sorted(maps.Keys(table)) }

// readers read into a look at a process of a role.
func (l *look) readers(role Role) obs.Readers {
	all := make(obs.Readers, len(table))
	for name, row := range table {
		if role == row.of || role == Local || role == Gateway && row.of == Sidecar { // gateways have those that call services
			all[name] = func(s *obs.Series) { row.read(l, s) }
		}
	}
	return all
}

func ofApp(read func(*tally, *obs.Series)) func(*look, *obs.Series) {
	return func(l *look, s *obs.Series) {
		if t := l.tally(s); t != nil {
			read(t, s)
		}
	}
}

// tally finds or makes that of the app of a series; nil where it names none.
func (l *look) tally(s *obs.Series) *tally {
	app := s.Label("app")
	t := l.tallies[app]
	if t == nil && app != "" {
		t = &tally{}
		l.tallies[app] = t
	}
	return t
}

// readTook reads how long the answers of an app took.
func (l *look) readTook(s *obs.Series) {
	t := l.tally(s)
	if h, ok := readHistogram(s); ok && t != nil {
		t.took = h
	}
}

func (l *look) readFailover(s *obs.Series) {
	if s.Value > 0 {
		l.conditions.failover = append(l.conditions.failover, idOf(s))
	}
}

func (l *look) readWithdrawn(s *obs.Series) {
	if app := s.Label("app"); s.Value > 0 && app != "" {
		l.conditions.withdrawn = append(l.conditions.withdrawn, api.Withdrawn{App: app, Version: idOf(s)})
	}
}

func ofStream(read func(*api.StreamNow, *obs.Series)) func(*look, *obs.Series) {
	return func(l *look, s *obs.Series) { read(l.conditions.stream(s.Label("stream")), s) }
}

func ofPool(read func(*pool, *obs.Series)) func(*look, *obs.Series) {
	return func(l *look, s *obs.Series) { read(l.leadership.pool(idOf(s)), s) }
}

func ofReplica(read func(*measures, *obs.Series)) func(*look, *obs.Series) {
	return func(l *look, s *obs.Series) { read(l.replica(s), s) }
}

// replica finds or makes the measures of the replica of a series.
func (l *look) replica(s *obs.Series) *measures {
	key := replicaKey{s.Label("model"), s.Label("version"), s.Label("replica")}
	m := l.replicas[key]
	if m == nil {
		m = newMeasures(l.at)
		l.replicas[key] = m
	}
	return m
}

func ofStage(read func(*stage, *obs.Series)) func(*look, *obs.Series) {
	return func(l *look, s *obs.Series) {
		if st := l.replica(s).stage(s.Label("stage")); st != nil {
			read(st, s)
		}
	}
}

// idOf is the model version that a series is about.
func idOf(s *obs.Series) serving.ModelID {
	return serving.ModelID{Model: s.Label("model"), Version: s.Label("version")}
}
