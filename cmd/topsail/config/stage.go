package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"topsail/serving"
)

// stageTable is one [[model.stages]].
type stageTable struct {
	Name       string          `toml:"name" help:"what after, metrics and logs call it"`
	Code       string          `toml:"code" help:"what its workers run, module:name; by default what the command's own program says"`
	After      []string        `toml:"after" help:"the stages whose outputs it takes, or input for the query's input; by default the stage before it"`
	Workers    int             `toml:"workers" help:"processes; by default 1"`
	CPUs       []int           `toml:"cpus" help:"CPUs that its workers run on, in turn; by default any"`
	Batch      stageBatchTable `toml:"batch"`
	Idempotent bool            `toml:"idempotent" help:"an input whose worker died may be given to another one, once"`
}

type stageBatchTable struct {
	Strategy string        `toml:"strategy" help:"aimd, quantile or fixed; by default inputs come one at a time"`
	MaxSize  int           `toml:"max_size" help:"most inputs in a batch; 0 is no cap; for fixed, the size"`
	Delay    time.Duration `toml:"delay_micros" help:"how long a batch may wait to fill, in microseconds"`
	Pad      bool          `toml:"pad" help:"for fixed: smaller batches are filled up to the size with copies of an input, whose answers are dropped"`
}

// pipelineCommand runs the stages of a model that names no command.
var pipelineCommand = []string{"python3", "-m", "topsail", "pipeline"}

// runnable says whether pipelineCommand can run the stages: all say their code.
func runnable(p serving.Pipeline) bool {
	return len(p) > 0 && !slices.ContainsFunc(p, func(s serving.Stage) bool { return s.Code == "" })
}

func pipeline(tables []stageTable) serving.Pipeline {
	var all serving.Pipeline
	for _, t := range tables {
		all = append(all, serving.Stage{
			Name: t.Name, After: t.After, Code: t.Code, Workers: t.Workers, CPUs: t.CPUs,
			Batch: serving.StageBatch(t.Batch), Idempotent: t.Idempotent,
		})
	}
	return all
}

func newStageTable(s serving.Stage) stageTable {
	return stageTable{
		Name: s.Name, Code: s.Code, After: s.After, Workers: s.Workers, CPUs: s.CPUs,
		Batch: stageBatchTable(s.Batch), Idempotent: s.Idempotent,
	}
}

// stageAt is the path of the stage that a message begins with, or path, that of the
// table with the stages, where it begins with none.
func stageAt(path string, stages serving.Pipeline, message string) string {
	for i, s := range slices.Backward(stages) { // of two with one name the second is wrong
		if strings.HasPrefix(message, fmt.Sprintf("stage %q", s.Name)) {
			return element(path+".stages", i)
		}
	}
	return path
}
