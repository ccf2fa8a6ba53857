package serving

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Stage is one step of a Pipeline: what it takes, and how the workers that run it
// are fed. Its zero values are one worker that gets its inputs one at a time.
type Stage struct {
	Name       string     `json:"name" required:"yes" help:"its name in after, metrics and logs"`
	After      []string   `json:"after,omitempty" help:"the stages whose outputs it takes, or input for the query's input; by default the stage before it"`
	Model      string     `json:"model,omitempty" help:"for a stage of an app: the model that it asks"`
	App        string     `json:"app,omitempty" help:"in place of model: another app that it asks, which decides by its policy"`
	Code       string     `json:"code,omitempty" help:"what its workers run, module:name; by default set by the program of the command"`
	Workers    int        `json:"workers,omitempty" help:"number of worker processes; by default 1"`
	CPUs       []int      `json:"cpus,omitempty" help:"CPUs to pin its workers to, in turn; by default any"`
	PerWorker  int        `json:"cpus_per_worker,omitempty" help:"how many of cpus each worker gets, in turn; by default 1"`
	Batch      StageBatch `json:"batch,omitzero"`
	MaxQueue   int        `json:"max_queue,omitempty" help:"most inputs that wait before it, beyond which the stages before it rest; by default 1024"`
	Idempotent bool       `json:"idempotent,omitempty" help:"retry an input once with another worker when its worker dies"`
}

// StageBatch is how the inputs of a stage come together in batches.
type StageBatch struct {
	Strategy string   `json:"strategy,omitempty" help:"aimd, quantile or fixed; by default, none, inputs come one at a time"`
	MaxSize  int      `json:"max_size,omitempty" help:"most inputs in a batch; 0 is no limit; for fixed, the size"`
	Delay    Duration `json:"delay_micros,omitempty" help:"how long a batch may wait to fill, from its first input, in microseconds"`
	Pad      bool     `json:"pad,omitempty" help:"for fixed: fill smaller batches up to the size with copies of an input, whose answers are dropped"`
}

// Pipeline is the stages of a model version, or of an app that asks one model, or app, after
// another. Each stage comes behind those that it
// takes from; the output of the last one answers the query, and every other one
// feeds at least one stage. A stage that takes from several waits for all of them.
type Pipeline []Stage

// QueryInput names, in Stage.After, the input of the query itself.
const QueryInput = "input"

const (
	// MaxStages bounds a pipeline.
	MaxStages = 32
	// MaxWorkers bounds the processes of one stage.
	MaxWorkers = 64
	// StageQueue is how many inputs may wait before a stage that does not say it, and MaxStageQueue how many it may say.
	StageQueue    = 1024
	MaxStageQueue = 65536
)

var stageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// IsStageName says whether a stage can have the name.
func IsStageName(name string) bool { return stageName.MatchString(name) }

// Check says everything that is wrong with the pipeline, or nil.
func (p Pipeline) Check() error { return errors.Join(p.problems()...) }

// problems are what is wrong with the pipeline, each with its stage.
func (p Pipeline) problems() (errs []error) {
	if len(p) > MaxStages {
		errs = append(errs, fmt.Errorf("a pipeline has at most %d stages, and this one has %d", MaxStages, len(p)))
	}
	seen := map[string]bool{QueryInput: true}
	used := map[string]bool{}
	for i, s := range p {
		for _, err := range s.problems(seen) {
			errs = append(errs, fmt.Errorf("stage %q: %w", s.Name, err))
		}
		seen[s.Name] = true
		for _, from := range p.Sources(i) {
			used[from] = true
		}
	}
	for _, s := range p[:max(0, len(p)-1)] {
		if !used[s.Name] {
			errs = append(errs, fmt.Errorf("stage %q feeds no other stage: only the last one answers the query", s.Name))
		}
	}
	return errs
}

// problems are what is wrong with a stage, alone and after the ones seen.
func (s *Stage) problems(seen map[string]bool) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case !stageName.MatchString(s.Name):
		wrong("use a name of 1 to 63 letters, digits, '_' or '-', beginning with a letter or digit")
	case seen[s.Name]:
		wrong("another stage has this name; %q names the query's input", QueryInput)
	}
	for i, from := range s.After {
		if !seen[from] {
			wrong("after names %q, which is not a stage before it", from)
		}
		if slices.Contains(s.After[:i], from) {
			wrong("after names %q twice", from)
		}
	}
	if s.Workers < 0 || s.Workers > MaxWorkers {
		wrong("workers must be between 1 and %d", MaxWorkers)
	}
	if slices.ContainsFunc(s.CPUs, func(cpu int) bool { return cpu < 0 }) {
		wrong("cpus must be numbers of CPUs, from 0 on")
	}
	if s.PerWorker < 0 || s.PerWorker > max(1, len(s.CPUs)) {
		wrong("cpus_per_worker must be between 1 and the number of cpus")
	}
	if s.MaxQueue < 0 || s.MaxQueue > MaxStageQueue {
		wrong("max_queue must be between 0 (%d) and %d", StageQueue, MaxStageQueue)
	}
	b := s.Batch
	switch b.Strategy {
	case "", "none", "aimd", "quantile":
	case "fixed":
		if b.MaxSize == 0 {
			wrong("batch strategy \"fixed\" needs max_size, the size")
		}
	default:
		wrong("batch strategy %q is unknown: use \"none\", \"fixed\", \"aimd\" or \"quantile\"", b.Strategy)
	}
	if b.Pad && b.Strategy != "fixed" {
		wrong("batch pad needs strategy \"fixed\", whose size it fills batches up to")
	}
	if b.MaxSize < 0 || b.MaxSize > 65536 {
		wrong("batch max_size must be between 0 (no cap) and 65536")
	}
	if b.Delay < 0 || b.Delay.Std() > MaxBatchDelay {
		wrong("batch delay must be between 0 and %v", MaxBatchDelay)
	}
	return errs
}

// CPUsOf are the CPUs of worker i; none where it runs on any.
func (s *Stage) CPUsOf(i int) (cpus []int) {
	per := max(1, s.PerWorker)
	for at := i * per; at < (i+1)*per && len(s.CPUs) > 0; at++ {
		cpus = append(cpus, s.CPUs[at%len(s.CPUs)])
	}
	return cpus
}

// Sources are whose outputs stage i takes: names of stages, or QueryInput.
func (p Pipeline) Sources(i int) []string {
	switch {
	case len(p[i].After) > 0:
		return p[i].After
	case i == 0:
		return []string{QueryInput}
	}
	return []string{p[i-1].Name}
}

// Spec is the batching of a stage in the terms of a model version's.
func (b StageBatch) Spec() BatchSpec {
	if b.Strategy == "" || b.Strategy == "none" {
		return BatchSpec{Strategy: "fixed", MaxSize: 1}
	}
	return BatchSpec(b)
}
