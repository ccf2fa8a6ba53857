package config

import (
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestStages(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "stages.toml"), user, nil)
	equal(t, "stages", c.Versions[0].Stages, serving.Pipeline{
		{Name: "decode", Code: "digits:Decode", Workers: 2, CPUs: []int{1, 2, 3, 4}, PerWorker: 2, MaxQueue: 256, Idempotent: true},
		{Name: "embed", Code: "digits:Embed", Batch: serving.StageBatch{Strategy: "aimd", MaxSize: 64, Delay: serving.Duration(500 * time.Microsecond)}},
		{Name: "words", Code: "digits:words", After: []string{"input"}},
		{Name: "rank", Code: "digits:Rank", After: []string{"embed", "words"}, Batch: serving.StageBatch{Strategy: "fixed", MaxSize: 16, Pad: true}},
	})
	if got := c.Versions[0].Container; !slices.Equal(got.Command, []string{"python3", "-m", "topsail", "pipeline"}) || got.Dir != "/etc/topsail" {
		t.Errorf("stages that all have code are run by %q in %q", got.Command, got.Dir)
	}
	equal(t, "stages of a program that has its own", c.Versions[1].Stages, serving.Pipeline{{Name: "scale", Workers: 3}})
	if got := c.Versions[1].Container; !slices.Equal(got.Command, []string{"./serve"}) || got.Dir != "/etc/topsail/go" {
		t.Errorf("a command that is given becomes %q in %q", got.Command, got.Dir)
	}
}
