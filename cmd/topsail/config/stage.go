package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// pipelineCommand runs the stages of a model that names no command.
var pipelineCommand = []string{"python3", "-m", "topsail", "pipeline"}

// runnable says whether pipelineCommand can run the stages: all say their code.
func runnable(p serving.Pipeline) bool {
	return len(p) > 0 && !slices.ContainsFunc(p, func(s serving.Stage) bool { return s.Code == "" })
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
