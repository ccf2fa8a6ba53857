package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

func versionCommand() *cobra.Command {
	list := verb(&cobra.Command{
		Use: "list [MODEL]", Short: "List the versions of all models, or of one",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: complete(modelNames),
	}, listVersions)
	get := verb(takesVersion("get MODEL:VERSION", "Show a version"), func(k *call) error {
		id, err := oneVersion(k.args)
		if err != nil {
			return err
		}
		return read(k, func(v api.Version) *screen.Table { return versionTable(v, k.now) }, nil, versionPath(id)...)
	})
	remove := verb(deletes(takesVersion("delete MODEL:VERSION", "Delete an unused version")), func(k *call) error {
		id, err := oneVersion(k.args)
		if err != nil {
			return err
		}
		return k.remove(deletion(versionPath(id)...), "Delete %v?", "%v is deleted", id)
	})
	job := verb(takesVersion("job MODEL:VERSION", "Print how a version is run: its Nomad job, or its command"), showJob)
	return noun(&cobra.Command{Use: "version", Short: "Versions of models, and how many replicas they have"},
		list, get, createVersion(), remove, scaleVersion(), pinVersion(), releaseVersion(), versionStages(), job)
}

func listVersions(k *call) error {
	models := k.args
	if len(models) == 0 {
		var err error
		if models, err = modelNames(k); err != nil {
			return err
		}
	}
	columns := []string{"VERSION", "USE", "INPUT", "REPLICAS", "RUNS", "APPS"}
	if k.wide() {
		columns = append(columns, "BATCHES", "LABELS", "ORIGIN", "DEPLOYED", "COMMIT", "P50", "P99", "INPUTS/S", "ERRORS")
	}
	t := screen.NewTable(columns...)
	all := []json.RawMessage{}
	for _, name := range models {
		versions, raw, err := items[api.Version](k, 0, nil, "models", name, "versions")
		if err != nil {
			return err
		}
		all = append(all, raw...)
		for _, v := range versions {
			row := []string{
				v.ModelID.String(), use(v), inputType(v.InputType), replicasText(v, k.now),
				screen.Short(runs(v), 40), strings.Join(v.UsedBy, ", "),
			}
			if k.wide() {
				row = append(row, batches(v.Batch), strings.Join(v.Labels, ", "), string(v.Origin), deployedAt(v.Deployed, k.now), shortCommit(v.Deployed))
				p := performanceOf(v)
				row = append(row, known(p.P50, batchTime), known(p.P99, batchTime), known(p.Throughput, screen.Number), known(p.Errors, screen.Share))
			}
			t.Row(row...)
		}
	}
	return k.showList(all, t, "there are no versions yet: deploy one with `topsail deploy NAME --bundle PATH`")
}

// use says where queries go.
func use(v api.Version) string {
	var words []string
	if v.Current {
		words = append(words, "current")
	}
	if v.Serving {
		words = append(words, "serving")
	}
	if v.Prepared {
		words = append(words, "prepared")
	}
	return strings.Join(words, ", ")
}

func replicasText(v api.Version, now time.Time) string {
	if v.HostedBy != "" {
		return "in " + v.HostedBy
	}
	if v.Service != nil {
		return "by others"
	}
	text, pin := strconv.Itoa(v.Replicas), v.Pin
	if v.Scale != nil {
		text = fmt.Sprintf("%d to %d", v.Scale.Min, v.Scale.Max)
	}
	switch {
	case !pin.Holds(now):
		return text
	case pin.Count == serving.Paused:
		return text + ", paused"
	}
	return fmt.Sprintf("%s, pinned to %d", text, pin.Count)
}

// runs says what a replica is made of. Arguments and variables may be secrets.
func runs(v api.Version) string {
	switch {
	case v.Bundle != "":
		return "bundle " + screen.Short(v.Bundle, 20)
	case v.Service != nil:
		return "service " + cmp.Or(v.Service.Name, strings.Join(v.Service.Addrs, ", "))
	case v.Image != "":
		return "image " + v.Image
	case v.Addr != "":
		return "container at " + v.Addr
	case len(v.Command) > 0:
		return v.Command[0]
	}
	return ""
}

func batches(b serving.BatchSpec) string {
	text := b.Strategy
	switch {
	case b.Pad:
		text += " filled to " + strconv.Itoa(b.MaxSize)
	case b.MaxSize > 0:
		text += " up to " + strconv.Itoa(b.MaxSize)
	}
	if b.Delay > 0 {
		text += " after " + screen.Micros(b.Delay.Std().Microseconds())
	}
	return strings.TrimSpace(text)
}

func versionTable(v api.Version, now time.Time) *screen.Table {
	t := screen.NewTable()
	t.Row("version", v.ModelID.String())
	t.Row("description", v.Description)
	t.Row("use", use(v))
	t.Row("apps", strings.Join(v.UsedBy, ", "))
	t.Row("input", strings.TrimSpace(inputType(v.InputType)+" "+length(v.InputLength)))
	t.Row("example", v.Example)
	t.Row("replicas", replicasText(v, now))
	if pin := v.Pin; pin.Holds(now) {
		t.Row("pin", pinText(pin, now))
	}
	if len(v.Stages) == 0 {
		t.Row("batches", batches(v.Batch))
	}
	t.Row("runs", runs(v))
	for _, s := range v.Stages {
		t.Row("stage "+s.Name, stageText(s))
	}
	t.Row("folder", v.Dir)
	t.Row("variables", strings.Join(sortedKeys(v.Env), ", "))
	t.Row("labels", strings.Join(v.Labels, ", "))
	t.Row("origin", string(v.Origin))
	t.Row("deployed", deployedText(v.Deployed, now))
	t.Row("performance", performanceText(v.Performance, now))
	return t
}

// deployedText says where a version comes from.
func deployedText(d *serving.Deployed, now time.Time) string {
	if d == nil {
		return "unknown"
	}
	text := deployedAt(d, now)
	if d.Client != "" {
		text += ", with " + d.Client
	}
	if d.Commit != "" {
		text += ", commit " + d.Commit
	}
	return text
}

func deployedAt(d *serving.Deployed, now time.Time) string {
	if d == nil {
		return "unknown"
	}
	return screen.Ago(now, d.At) + " by " + d.By
}

// shortCommit is enough of a commit to know it by.
func shortCommit(d *serving.Deployed) string {
	if d == nil {
		return ""
	}
	hash, dirty := strings.CutSuffix(d.Commit, "-dirty")
	if len(hash) >= 40 {
		hash = hash[:12]
	}
	if dirty {
		hash += "-dirty"
	}
	return hash
}

func performanceOf(v api.Version) api.Performance {
	if v.Performance == nil {
		return api.Performance{}
	}
	return *v.Performance
}

// performanceText says what the replicas of a version did; empty while nothing is known.
func performanceText(p *api.Performance, now time.Time) string {
	if p == nil {
		return ""
	}
	var parts []string
	if p.P50 != nil && p.P99 != nil {
		parts = append(parts, fmt.Sprintf("p50 %s, p99 %s for a batch of %s", batchTime(*p.P50), batchTime(*p.P99), known(p.BatchMean, screen.Number)))
	}
	if p.Throughput != nil {
		parts = append(parts, screen.Number(*p.Throughput)+" inputs/s of a replica")
	}
	if p.Errors != nil {
		parts = append(parts, fmt.Sprintf("%s errors in %d answers", screen.Share(*p.Errors), p.Answers))
	}
	return strings.Join(append(parts, "since "+screen.Ago(now, p.Since)), "; ")
}

// known shows a figure, or nothing where there is none.
func known(v *float64, show func(float64) string) string {
	if v == nil {
		return ""
	}
	return show(*v)
}

func batchTime(micros float64) string { return screen.Micros(int64(micros)) }

func length(n int) string {
	if n == 0 {
		return ""
	}
	return "of " + strconv.Itoa(n)
}

func pinText(p *serving.Pin, now time.Time) string {
	text := "until it is released"
	if !p.Until.IsZero() {
		text = "ends " + screen.Ago(now, p.Until)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

func showJob(k *call) error {
	id, err := oneVersion(k.args)
	if err != nil {
		return err
	}
	var job api.Job
	raw, err := k.Get(k.ctx, &job, nil, versionPath(id, "job")...)
	if err != nil {
		return err
	}
	if k.format == "json" {
		return k.json(raw)
	}
	k.say("%s", strings.TrimRight(job.Text, "\n"))
	if job.Plan != "" {
		fmt.Fprintln(k.Err, screen.CleanLines(job.Plan))
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// versionArg reads a version as MODEL:VERSION or as two arguments, and returns the
// arguments after it.
func versionArg(args []string) (serving.ModelID, []string, error) {
	if len(args) > 0 {
		if model, version, ok := strings.Cut(args[0], ":"); ok && model != "" && version != "" {
			return serving.ModelID{Model: model, Version: version}, args[1:], nil
		}
	}
	if len(args) < 2 || args[0] == "" || args[1] == "" || strings.Contains(args[0], ":") {
		return serving.ModelID{}, nil, misused("name a version as MODEL:VERSION, such as wine-forest:1")
	}
	return serving.ModelID{Model: args[0], Version: args[1]}, args[2:], nil
}

// oneVersion is versionArg for commands that take nothing else.
func oneVersion(args []string) (serving.ModelID, error) {
	id, rest, err := versionArg(args)
	if err == nil && len(rest) > 0 {
		err = misused("name one version only, without %q", strings.Join(rest, " "))
	}
	return id, err
}

func versionPath(id serving.ModelID, more ...string) []string {
	return append([]string{"models", id.Model, "versions", id.Version}, more...)
}
