package inference

import "github.com/topsail-serving/topsail/serving"

// Statistics are those of a model. Where within an answer the time went is not counted: the parts that
// the protocol has for it are 0.
type Statistics struct {
	Name           string         `json:"name"`
	Version        string         `json:"version"`
	LastInference  int64          `json:"last_inference"` // 0: that is not kept
	InferenceCount uint64         `json:"inference_count"`
	ExecutionCount uint64         `json:"execution_count"`
	Inference      InferenceTimes `json:"inference_stats"`
	Batches        []struct{}     `json:"batch_stats"` // none: batches are the sidecars'
}

// InferenceTimes are how often something happened, and how long it took together.
type InferenceTimes struct {
	Success       Duration `json:"success"`
	Fail          Duration `json:"fail"`
	Queue         Duration `json:"queue"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
	CacheHit      Duration `json:"cache_hit"`
	CacheMiss     Duration `json:"cache_miss"`
}

// Duration is a number and a time in all.
type Duration struct {
	Count uint64 `json:"count"`
	Nanos uint64 `json:"ns"`
}

// NewStatistics are the statistics of an app. A version is the one asked for, or of an app with one
// model the current one. Triton's perf_analyzer needs a number there, and finds the version that answered by its queue.
func NewStatistics(app *serving.App, cat *serving.Catalog, version string, t serving.Inferences) Statistics {
	if version == "" {
		version = "0"
		if len(app.Models) == 1 && cat.Models[app.Models[0]] != nil {
			version = cat.Models[app.Models[0]].Current
		}
	}
	s := Statistics{Name: app.Name, Version: version, InferenceCount: t.Succeeded, ExecutionCount: t.Asked, Batches: []struct{}{}}
	all := t.Succeeded + t.Defaults
	mean := uint64(t.Took) / max(all, 1)
	s.Inference.Success = Duration{t.Succeeded, t.Succeeded * mean}
	s.Inference.Fail = Duration{t.Defaults, t.Defaults * mean}
	s.Inference.Queue.Count, s.Inference.CacheHit.Count, s.Inference.CacheMiss.Count = all, t.Cached, t.Asked
	return s
}
