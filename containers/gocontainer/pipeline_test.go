package gocontainer

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestTheVersionSaysHowStagesRun: the program says what the stages are.
func TestTheVersionSaysHowStagesRun(t *testing.T) {
	own := []Stage{
		{Stage: serving.Stage{Name: "scale", Workers: 2}},
		{Stage: serving.Stage{Name: "shift", Idempotent: true, Batch: serving.StageBatch{Strategy: "aimd"}}},
	}
	t.Setenv("TOPSAIL_SIDECAR", "127.0.0.1:1")
	t.Setenv("TOPSAIL_STAGES", `[{"name":"shift","workers":3,"batch":{"strategy":"fixed","max_size":16}}]`)
	cfg, err := FromEnv()
	require.NoError(t, err)
	got, err := told(own, cfg.Stages)
	require.NoError(t, err)
	if s := got[0]; s.Workers != 2 || s.Batch != (serving.StageBatch{}) {
		t.Errorf("a stage that is not named has become %+v", s.Stage)
	}
	if s := got[1]; s.Workers != 3 || s.Batch != (serving.StageBatch{Strategy: "fixed", MaxSize: 16}) || !s.Idempotent {
		t.Errorf("a stage that is named has become %+v", s.Stage)
	}
	if own[1].Workers != 0 {
		t.Error("the program's own stages were changed")
	}
	if _, err := told(own, serving.Pipeline{{Name: "rank"}}); err == nil || !strings.Contains(err.Error(), `"rank", which this program does not have`) {
		t.Errorf("a stage that is not there: %v", err)
	}
	t.Setenv("TOPSAIL_STAGES", `[{"name":""}]`)
	if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), "TOPSAIL_STAGES") {
		t.Errorf("nonsense is taken: %v", err)
	}
}
