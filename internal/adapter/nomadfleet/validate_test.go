//go:build servers

package nomadfleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

func TestInvalidJobs(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	for want, group := range map[string]*api.TaskGroup{
		"Missing tasks":       api.NewTaskGroup("g", 1),
		"Missing task driver": api.NewTaskGroup("g", 1).AddTask(api.NewTask("t", "")),
	} {
		job := api.NewServiceJob("x", "x", "global", 50).AddDatacenter("*").AddTaskGroup(group)
		if err := f.validate(t.Context(), job); !errors.Is(err, serving.ErrJobRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
