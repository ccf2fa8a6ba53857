package admin

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

func versionStages() *cobra.Command {
	c := takesVersion("stages MODEL:VERSION", "Show the time spent in each stage of a version, and the bottleneck")
	c.Flags().Duration("window", time.Minute, "how far back: 1m to 15m")
	return verb(c, func(k *call) error {
		id, err := oneVersion(k.args)
		if err != nil {
			return err
		}
		window, err := k.cmd.Flags().GetDuration("window")
		if err != nil || window < time.Minute || window > 15*time.Minute {
			return misused("--window must be between 1m and 15m")
		}
		query := url.Values{"window": {strconv.Itoa(int(window / time.Second))}}
		var s api.VersionStages
		raw, err := k.Get(k.ctx, &s, query, versionPath(id, "stages")...)
		if err != nil {
			return err
		}
		if len(s.Stages) == 0 && k.format != "json" {
			k.say("%v has no stages, or no replica has reported them yet", id)
			return nil
		}
		return k.show(raw, stagesTable(s))
	})
}

func stagesTable(s api.VersionStages) *screen.Table {
	t := screen.NewTable("STAGE", "TAKES", "WORKERS", "WAITING", "RATE", "BUSY", "BATCH", "WAIT", "P99", "RUN", "P99", "NOT OK", "NOTE")
	for _, one := range s.Stages {
		t.Row(one.Stage, strings.Join(one.After, ", "), workers(one), count(one.Waiting), shown(one.Rate, perSecond), shown(one.Busy, screen.Share),
			mean(one.BatchMean), shown(one.Wait, micros), shown(one.WaitP99, micros), shown(one.Run, micros), shown(one.RunP99, micros),
			notOK(one.Ended), noteOn(one, s.Bottleneck))
	}
	return t
}

func workers(s api.StageTraffic) string { return count(s.Ready) + "/" + count(s.Workers) }

func perSecond(x float64) string { return screen.Number(x) + "/s" }

// shown is empty for what is unknown.
func shown(x *float64, show func(float64) string) string {
	if x == nil {
		return ""
	}
	return show(*x)
}

func mean(x float64) string {
	if x == 0 {
		return ""
	}
	return screen.Number(x)
}

// notOK counts the inputs that did not end well.
func notOK(ended map[string]uint64) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(ended)) {
		if status != "ok" && ended[status] > 0 {
			parts = append(parts, status+" "+strconv.FormatUint(ended[status], 10))
		}
	}
	return strings.Join(parts, ", ")
}

// pressed is the share of the time above which a busy stage holds the others up.
const pressed = 0.7

func noteOn(s api.StageTraffic, bottleneck string) string {
	switch {
	case s.Ready == 0 && s.Workers > 0:
		return "no worker is ready"
	case s.Stage != bottleneck || s.Busy == nil:
		return ""
	case *s.Busy > pressed:
		return "bottleneck"
	}
	return "busiest"
}

// stageText is how a version says that a stage is run.
func stageText(s serving.Stage) string {
	n := cmp.Or(s.Workers, 1)
	parts := []string{s.Code, count(n) + " worker"}
	if n > 1 {
		parts[1] += "s"
	}
	if len(s.After) > 0 {
		parts = append(parts, "takes "+strings.Join(s.After, " and "))
	}
	if len(s.CPUs) > 0 {
		cpus := make([]string, len(s.CPUs))
		for i, cpu := range s.CPUs {
			cpus[i] = count(cpu)
		}
		on := "on CPU " + strings.Join(cpus, ", ")
		if s.PerWorker > 1 {
			on += ", " + count(s.PerWorker) + " each"
		}
		parts = append(parts, on)
	}
	if s.Batch != (serving.StageBatch{}) && s.Batch.Strategy != "none" {
		parts = append(parts, "batches "+batches(serving.BatchSpec(s.Batch)))
	}
	if s.MaxQueue > 0 {
		parts = append(parts, "at most "+count(s.MaxQueue)+" wait")
	}
	if s.Idempotent {
		parts = append(parts, "idempotent")
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}
