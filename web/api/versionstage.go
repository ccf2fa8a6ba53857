package api

import "topsail/serving"

// VersionStage is a stage of a version.
type VersionStage struct {
	Name       string   `json:"name" required:"yes"`
	After      []string `json:"after,omitempty"`
	Code       string   `json:"code,omitempty"`
	Workers    int      `json:"workers,omitempty"`
	CPUs       []int    `json:"cpus,omitempty"`
	Batch      *Batch   `json:"batch,omitempty"`
	Idempotent bool     `json:"idempotent,omitempty"`
}

func stagesOf(p serving.Pipeline) []VersionStage {
	var docs []VersionStage
	for _, s := range p {
		doc := VersionStage{Name: s.Name, After: s.After, Code: s.Code, Workers: s.Workers, CPUs: s.CPUs, Idempotent: s.Idempotent}
		if b := s.Batch; b != (serving.StageBatch{}) {
			doc.Batch = &Batch{b.Strategy, b.MaxSize, microsOf(b.Delay), b.Pad}
		}
		docs = append(docs, doc)
	}
	return docs
}

// pipeline is the stages that the documents describe.
func pipeline(docs []VersionStage) (serving.Pipeline, error) {
	var p serving.Pipeline
	var times durations
	for i, doc := range docs {
		s := serving.Stage{Name: doc.Name, After: doc.After, Code: doc.Code, Workers: doc.Workers, CPUs: doc.CPUs, Idempotent: doc.Idempotent}
		if b := doc.Batch; b != nil {
			s.Batch = serving.StageBatch{Strategy: b.Strategy, MaxSize: b.MaxSize, Delay: times.read(b.Delay, "stages[%d].batch.delay_micros", i), Pad: b.Pad}
		}
		p = append(p, s)
	}
	return p, times.err
}
