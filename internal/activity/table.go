package activity

// The measurements, by what their points are about.
const (
	apps      = "topsail_apps"
	appModels = "topsail_app_models" // model versions of apps
	versions  = "topsail_versions"   // at their replicas
	stages    = "topsail_stages"     // of versions
)

// tagsOf are the labels that tell the points of a measurement apart. Others, such as that of the replica, whose
// names never repeat, do not: what they tell apart is summed.
var tagsOf = map[string][]string{
	apps:      {"app"},
	appModels: {"app", "model", "version"},
	versions:  {"model", "version"},
	stages:    {"model", "version", "stage"},
}

// kind is what a metric says about a point.
type kind int

const (
	counted  kind = iota // by how much it has grown in the interval
	measured             // a gauge at the end of the interval, which alone is no activity
	waiting              // a gauge that is activity if it is not 0
)

// row says where a metric goes: to a field of a measurement, or to one for each value of a label. A histogram goes
// to a field _count, a field _sum, and fields _bucket_BOUND for buckets.
type row struct {
	measurement, field string
	by                 string
	kind               kind
}

// table is what is said, by the names of metrics.
var table = map[string]row{
	"topsail_gateway_answers_total":      {apps, "answers", "cause", counted},
	"topsail_gateway_query_seconds":      {apps, "query_seconds", "", counted},
	"topsail_gateway_objective_seconds":  {apps, "objective_seconds", "", measured},
	"topsail_gateway_cache_total":        {apps, "cache", "result", counted},
	"topsail_gateway_late_outputs_total": {apps, "late_outputs", "", counted},
	"topsail_gateway_refused_total":      {apps, "refused", "reason", counted},
	"topsail_feedback_total":             {apps, "feedback", "result", counted},
	"topsail_feedback_loss_total":        {apps, "feedback_loss", "", counted},

	"topsail_selection_models_total":    {appModels, "", "event", counted},
	"topsail_selection_shed_total":      {appModels, "shed", "", counted},
	"topsail_feedback_models_total":     {appModels, "feedback", "", counted},
	"topsail_feedback_model_loss_total": {appModels, "feedback_loss", "", counted},

	"topsail_sidecar_answers_total":      {versions, "answers", "status", counted},
	"topsail_sidecar_dropped_total":      {versions, "dropped", "status", counted},
	"topsail_sidecar_batch_size":         {versions, "batch_size", "", counted},
	"topsail_sidecar_batch_seconds":      {versions, "batch_seconds", "", counted},
	"topsail_sidecar_queue_seconds":      {versions, "queue_seconds", "", counted},
	"topsail_sidecar_first_part_seconds": {versions, "first_part_seconds", "", counted},
	"topsail_sidecar_next_part_seconds":  {versions, "next_part_seconds", "", counted},
	"topsail_sidecar_queue_length":       {versions, "queue_length", "", waiting},
	"topsail_sidecar_containers_ready":   {versions, "containers_ready", "", measured},

	"topsail_stage_inputs_total":  {stages, "inputs", "status", counted},
	"topsail_stage_batch_size":    {stages, "batch_size", "", counted},
	"topsail_stage_batch_seconds": {stages, "batch_seconds", "", counted},
	"topsail_stage_queue_seconds": {stages, "queue_seconds", "", counted},
	"topsail_stage_queue_length":  {stages, "queue_length", "", waiting},
	"topsail_stage_workers_ready": {stages, "workers_ready", "", measured},
}
