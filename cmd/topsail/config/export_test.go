package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestExportIsReadAgain holds that a catalog that was exported and loaded is the same:
// applying an export changes nothing but whose the objects are.
func TestExportIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawCatalog(t)
		text, err := Export(want)
		require.NoError(t, err)
		c, err := loadText(string(text), user, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		apps, versions := c.Objects()
		got, _, err := catalog.Merge(&serving.Catalog{}, apps, versions, c.Current)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if g, w := written(t, got), written(t, want); g != w {
			t.Fatalf("got\n%s\nwant\n%s\nof\n%s", g, w, text)
		}
	})
}

// written is what a file can say of a catalog.
func written(t rapid.TB, cat *serving.Catalog) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, name := range keys(cat.Apps) {
		a := *cat.Apps[name]
		a.Origin = serving.FromFile
		require.NoError(t, e.Encode(a))
	}
	for _, name := range keys(cat.Models) {
		m := cat.Models[name]
		b.WriteString(m.Name + " " + m.Current + "\n")
		for _, number := range keys(m.Versions) {
			v := *m.Versions[number]
			v.Origin, v.Pin, v.Generation, v.Deployed = serving.FromFile, nil, "", nil
			require.NoError(t, e.Encode(v))
		}
	}
	return b.String()
}

// drawCatalog draws what the API lets people make and a file can say.
func drawCatalog(t *rapid.T) *serving.Catalog {
	cat := &serving.Catalog{}
	apply := func(change catalog.Change) {
		next, err := catalog.Apply(cat, change, 0)
		if err != nil {
			t.Fatalf("%+v: %v", change, err)
		}
		cat = next
	}
	kind := rapid.SampledFrom([]serving.InputType{serving.Bytes, serving.Ints, serving.Floats, serving.Doubles, serving.Strings}).Draw(t, "input type")
	models := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"forest", "svm", "m-3"}), 0, 3, rapid.ID).Draw(t, "models")
	for _, model := range models {
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2", "10", "2024-06+a.b"}), 1, 3, rapid.ID).Draw(t, "versions") {
			v := drawVersion(t, serving.ModelID{Model: model, Version: name})
			v.InputType = kind
			if kind == serving.Strings {
				v.InputLength = 0
			}
			apply(catalog.PutVersion{Version: v, KeepCurrent: cat.Models[model] != nil && rapid.Bool().Draw(t, "keep")})
		}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"wine", "Digits.2", "a_b"}), 0, 3, rapid.ID).Draw(t, "apps") {
		apply(catalog.PutApp{App: drawApp(t, name, kind, models)})
	}
	return cat
}

// texts are those that are hard to write.
var texts = rapid.OneOf(rapid.SampledFrom([]string{"", "-1", "a\"b\\c", "'''", "\x00\x1f\x7f\u0080", "a\nb\r\n\tc", "# no comment", "ä€😀\u2028", "\ufeff"}), rapid.String())

var shares = rapid.Float64Range(0, 1)

func drawApp(t *rapid.T, name string, kind serving.InputType, models []string) serving.App {
	a := serving.App{
		Name: name, Description: texts.Draw(t, "description"), InputType: kind, DefaultOutput: texts.Draw(t, "default"),
		SLO:           serving.Duration(micros(t, "slo", 100, 10*time.Minute)),
		Models:        models,
		OutputType:    rapid.SampledFrom([]serving.OutputType{"", serving.OutputLabel, serving.OutputJSON}).Draw(t, "output type"),
		Weight:        rapid.Float64Range(0, 1000).Draw(t, "weight"),
		Cache:         serving.CacheSpec{Off: rapid.Bool().Draw(t, "off"), TTL: serving.Duration(micros(t, "ttl", 0, time.Hour))},
		Example:       rapid.SampledFrom([]string{"", `[1.5, "a'\"\\b"]`, "{\n\"a\": null}"}).Draw(t, "example"),
		RequireKey:    rapid.Bool().Draw(t, "key"),
		SLOBetween:    serving.Duration(micros(t, "between", 0, 10*time.Minute)),
		SLOTotal:      serving.Duration(micros(t, "total", 600_000_000, 24*time.Hour)),
		Route:         rapid.SampledFrom([]serving.Route{"", serving.RoutePrefix}).Draw(t, "route"),
		ShareStreams:  rapid.Bool().Draw(t, "share"),
		DefaultErrors: rapid.Bool().Draw(t, "default errors"),
		Labels:        rapid.SliceOfN(rapid.StringN(0, 5, 20), 0, 2).Draw(t, "labels"),
		Policy:        drawPolicy(t, models),
	}
	if len(models) > 0 && rapid.IntRange(0, 3).Draw(t, "stages") == 0 {
		a.Models, a.Policy = nil, serving.PolicySpec{}
		a.Stages = serving.Pipeline{{Name: "first", Model: models[0]}, {Name: "last", Model: models[len(models)-1]}}
		if rapid.Bool().Draw(t, "joins") {
			a.Stages[1].After = []string{"input", "first"}
		}
	}
	if kind != serving.Bytes && kind != serving.Strings {
		a.Cache.Round = rapid.Float64Range(0, 10).Draw(t, "round")
	}
	if rapid.Bool().Draw(t, "waits") {
		a.ColdStart = serving.Duration(max(a.SLO.Std(), time.Minute))
	}
	if rapid.Bool().Draw(t, "limited") {
		a.Limit = &serving.Limit{PerSecond: rapid.Float64Range(1e-3, 1e9).Draw(t, "rate"), Burst: rapid.IntRange(0, 100).Draw(t, "burst")}
	}
	return a
}

func drawPolicy(t *rapid.T, models []string) serving.PolicySpec {
	kind := rapid.SampledFrom([]string{"", serving.PolicySingle, serving.PolicyExp3, serving.PolicyBest}).Draw(t, "kind")
	p := serving.PolicySpec{Kind: kind}
	if len(models) == 0 {
		return p
	}
	switch kind {
	case serving.PolicyExp3:
		p.Gamma, p.Scope = rapid.Float64Range(0.001, 1).Draw(t, "gamma"), serving.ScopeUserContext
		p.Models = models
		p.Costs = map[string]float64{}
		for _, m := range models {
			p.Costs[m] = rapid.Float64Range(0.5, 1e9).Draw(t, "cost")
		}
		p.RecordSeconds = rapid.IntRange(0, 1000).Draw(t, "record")
	case serving.PolicyBest:
		p.Qualifier = rapid.SampledFrom([]string{"", "margin", "a.b \"c\""}).Draw(t, "qualifier")
		p.WithinMicros = rapid.Int64Range(0, 100).Draw(t, "within")
	}
	return p
}

func drawVersion(t *rapid.T, id serving.ModelID) serving.Version {
	v := serving.Version{
		ModelID:     id,
		Description: texts.Draw(t, "description"),
		InputLength: rapid.IntRange(0, 20).Draw(t, "length"),
		Labels:      rapid.SliceOfN(texts, 0, 2).Draw(t, "labels"),
		Replicas:    rapid.IntRange(0, 3).Draw(t, "replicas"),
		Batch: serving.BatchSpec{
			Strategy: rapid.SampledFrom([]string{"", "aimd", "quantile"}).Draw(t, "strategy"),
			MaxSize:  rapid.IntRange(0, 64).Draw(t, "size"), Delay: serving.Duration(micros(t, "delay", 0, time.Second)),
		},
		Container: drawContainer(t),
	}
	if rapid.Bool().Draw(t, "scales") {
		v.Scale = &serving.ScaleSpec{
			Min: rapid.IntRange(0, 2).Draw(t, "min"), Max: rapid.IntRange(2, 9).Draw(t, "max"), Metric: serving.ScaleOnRate, Target: rapid.Float64Range(0.1, 1e6).Draw(t, "target"),
			Utilisation: shares.Draw(t, "utilisation"), Idle: serving.Duration(micros(t, "idle", 0, time.Hour)), CooldownUp: serving.Duration(micros(t, "up", 0, time.Hour)), StepDown: 2,
		}
	}
	if c := v.Container; (len(c.Command) > 0 || c.Bundle != "") && rapid.Bool().Draw(t, "stages") {
		v.Batch = serving.BatchSpec{Strategy: rapid.SampledFrom([]string{"", "aimd"}).Draw(t, "strategy beside stages")}
		v.Stages = drawStages(t)
	}
	if rapid.Bool().Draw(t, "resources") {
		v.Resources = serving.Resources{CPU: 100, GPU: serving.GPU{Count: rapid.IntRange(1, 4).Draw(t, "gpus"), Device: "nvidia/gpu/1g.10gb"}}
	}
	return v
}

func drawStages(t *rapid.T) serving.Pipeline {
	var p serving.Pipeline
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"decode", "embed", "rank-2", "A_b"}), 1, 4, rapid.ID).Draw(t, "stages") {
		s := serving.Stage{
			Name: name, Code: texts.Draw(t, "code"), Workers: rapid.IntRange(0, serving.MaxWorkers).Draw(t, "workers"),
			CPUs: rapid.SliceOfN(rapid.IntRange(0, 127), 0, 3).Draw(t, "cpus"), Idempotent: rapid.Bool().Draw(t, "idempotent"),
		}
		switch s.Batch.Strategy = rapid.SampledFrom([]string{"", "none", "aimd", "quantile", "fixed"}).Draw(t, "batches"); s.Batch.Strategy {
		case "", "none":
		default:
			s.Batch.MaxSize, s.Batch.Delay = rapid.IntRange(1, 64).Draw(t, "most"), serving.Duration(micros(t, "batch delay", 0, time.Second))
		}
		if n := len(p); n > 0 && rapid.Bool().Draw(t, "joins") {
			s.After = []string{p[n-1].Name, serving.QueryInput}
		}
		p = append(p, s)
	}
	return p
}

func drawContainer(t *rapid.T) serving.Container {
	digest := "sha256:" + strings.Repeat("1a", 32)
	switch rapid.IntRange(0, 3).Draw(t, "container") {
	case 0:
		return serving.Container{Bundle: digest, BundleURL: rapid.SampledFrom([]string{"", "https://models.example/a.zip"}).Draw(t, "url")}
	case 1:
		return serving.Container{Addr: "10.0.0.7:7001", Protocol: "v1", Connections: rapid.IntRange(0, 4).Draw(t, "connections")}
	case 2:
		return serving.Container{}
	}
	return serving.Container{
		Command: append([]string{"python3"}, rapid.SliceOfN(texts, 0, 3).Draw(t, "arguments")...),
		Dir:     rapid.SampledFrom([]string{"/srv/a b", "/srv/\"x\""}).Draw(t, "dir"),
		Env:     rapid.MapOfN(texts, texts, 0, 3).Draw(t, "env"),
		Watch:   rapid.SliceOfN(rapid.SampledFrom([]string{"/a", "/b'c"}), 0, 2).Draw(t, "watch"),
		Driver:  "docker", Image: "llm:1",
		Artifacts: rapid.SliceOfN(rapid.Just(serving.Artifact{Source: "https://models.example/a?b=\"c\"", Checksum: digest, Destination: "local/a"}), 0, 2).Draw(t, "artifacts"),
		Secrets:   map[string]string{"HF_TOKEN": "hf"},
	}
}

// micros draws a time that a file can say.
func micros(t *rapid.T, label string, least int64, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(least, most.Microseconds()).Draw(t, label)) * time.Microsecond
}

// TestExportOfFile holds the text of an export, with the policies that the property
// does not draw.
func TestExportOfFile(t *testing.T) {
	for _, name := range []string{"topsail.toml", "policies.toml", "cluster.toml", "stages.toml"} {
		c := mustLoad(t, readTestdata(t, name), user, nil)
		apps, versions := c.Objects()
		cat, _, err := catalog.Merge(&serving.Catalog{}, apps, versions, c.Current)
		require.NoError(t, err)
		text, err := Export(cat)
		require.NoError(t, err)
		again := mustLoad(t, string(text), user, nil)
		apps, versions = again.Objects()
		same, report, err := catalog.Merge(cat, apps, versions, again.Current)
		if err != nil || same != cat {
			t.Errorf("%s: applying its export changes %v, %v:\n%s", name, report, err, text)
		}
		if name == "topsail.toml" && string(text) != readTestdata(t, "export.golden") {
			t.Errorf("the export is\n%s", text)
		}
	}
}

// TestExportRemarks holds what a file cannot say.
func TestExportRemarks(t *testing.T) {
	id := serving.ModelID{Model: "m", Version: "1"}
	v := &serving.Version{ModelID: id, InputType: serving.Ints, Pin: &serving.Pin{Count: 3, Reason: "x\n[[app]]"}, Container: serving.Container{Command: []string{"./serve"}, Watch: []string{"a\n[x]"}}}
	other := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "2"}, Prepared: true}
	cat := &serving.Catalog{
		Revision: 7,
		Apps:     map[string]*serving.App{"a": {Name: "a", InputType: serving.Ints, SLO: serving.Duration(time.Second), Policy: serving.PolicySpec{Kind: serving.PolicyExp3, Models: []string{"n"}}}},
		Models:   map[string]*serving.Model{"m": {Name: "m", Versions: map[string]*serving.Version{"1": v, "2": other}}},
	}
	text, err := Export(cat)
	require.NoError(t, err)
	var comments []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			comments = append(comments, strings.TrimSpace(line))
		}
	}
	want := []string{
		"# Apps and models of revision 7. `topsail apply -f` brings them in, and `topsail local` reads them.",
		"# Values of env may be secrets.",
		"# This does not load until it is corrected: app \"a\": policy: models names model \"n\", and the app does not link it: link it or leave it out",
		"# No version of m is current; applying this file makes the last one current.",
		"# An operator has pinned m:1 (replicas: 3); `topsail version pin` does that.",
		"# m:1 names no folder; from a file it starts in the folder of the file.",
		"# a [x] is relative to the folder of this file; it was relative to the folder where Topsail was started.",
		"# m:2 is prepared but not registered yet, so it is left out.",
	}
	if !slices.Equal(comments, want) {
		t.Errorf("got\n%s", strings.Join(comments, "\n"))
	}
	if _, err := parseFile("topsail.toml", "/etc", text); err != nil {
		t.Error(err)
	}
}

func TestParsePolicy(t *testing.T) {
	got, err := ParsePolicy([]byte("kind = 'custom'\nmodel = 'judge'\n[fallback]\nkind = 'vote'\nweights = { a = 1, b = 0.5 }\n"))
	want := serving.PolicySpec{Kind: serving.PolicyCustom, Model: "judge", Fallback: &serving.PolicySpec{Kind: serving.PolicyVote, Weights: map[string]float64{"a": 1, "b": 0.5}}}
	require.NoError(t, err)
	equal(t, "policy", got, want)
	for text, want := range map[string]string{
		"kind = exp3":              "policy:1:8: this is not TOML",
		"kind = 'exp3'\ngama = 1":  `policy: "gama" is unknown: did you mean "gamma"?`,
		"kind = 1979-05-27\n":      `policy: "kind" must be a string, not a date or time`,
		"share = 'x'":              `policy: "share" must be a float, not a string`,
		"share = nan":              `policy: "share" must be a finite number`,
		"[app.policy]\nkind = 'x'": `policy: "app" is unknown: use one of kind, `,
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParsePolicy holds that what is read can be written and read again.
func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{"kind = 'exp3'\ngamma = 0.1", "", "[fallback]\n[fallback.fallback]\nkind = 'x'", "models = ['a']\ncosts = { 'b' = 1 }", "share = inf"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePolicy(text)
		if err != nil {
			return
		}
		e := &exporter{}
		e.table(p)
		again, err := ParsePolicy(e.text.Bytes())
		if err != nil || e.err != nil {
			t.Fatalf("%v %v: %s", err, e.err, e.text.Bytes())
		}
		if again.Kind == "" {
			again.Kind = p.Kind // its default is left out
		}
		a, _ := json.Marshal(p)
		b, _ := json.Marshal(again)
		if !bytes.Equal(a, b) {
			t.Fatalf("%s is read again as %s", a, b)
		}
	})
}
