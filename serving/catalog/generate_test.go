package catalog_test

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

func app(name string, models ...string) serving.App {
	return serving.App{Name: name, InputType: serving.Doubles, SLO: serving.Duration(time.Second), Models: models}
}

func version(model, name string) serving.Version {
	return serving.Version{ModelID: id(model, name), InputType: serving.Doubles}
}

// key has a hash by its id and name.
func key(id, name string) serving.Key {
	hash := sha256.Sum256([]byte(id + name))
	return serving.Key{ID: id, Name: name, Role: serving.RoleDeployer, Hash: hash[:], Created: time.Unix(1_700_000_000, 0).UTC()}
}

func id(model, version string) serving.ModelID {
	return serving.ModelID{Model: model, Version: version}
}

// encode is all of a catalog or object but generations and who deployed them, to compare it.
func encode(t rapid.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return generations.ReplaceAllString(string(b), "")
}

var generations = regexp.MustCompile(`"generation":"[a-z2-7]{12}",|,"deployed":\{[^}]*\}`)

// Few names, so that changes meet.
var (
	appNames     = rapid.SampledFrom([]string{"a", "b", "c"})
	modelNames   = rapid.SampledFrom([]string{"m", "n"})
	versionNames = rapid.SampledFrom([]string{"1", "2", "3"})
	keyIDs       = rapid.SampledFrom([]string{"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"})
	policies     = []serving.PolicySpec{
		{},
		{Kind: serving.PolicyExp3, Models: []string{"n", "m"}, Gamma: 0.1, Costs: map[string]float64{"m": 0.3}},
		{Kind: serving.PolicyMean, Models: []string{}, Weights: map[string]float64{"m": 1, "n:1": 2}},                            // not for labels
		{Kind: serving.PolicyVersions, Canary: "2", Share: 0.1},                                                                  // not for two models
		{Kind: serving.PolicyCustom, Model: "n", Fallback: &serving.PolicySpec{Kind: serving.PolicyVote, Models: []string{"m"}}}, // not where n is linked
	}
	inputTypes = rapid.SampledFrom([]serving.InputType{serving.Doubles, serving.Doubles, serving.Doubles, serving.Floats})
)

func drawApp(t *rapid.T) serving.App {
	a := app(appNames.Draw(t, "app"), rapid.SliceOfN(modelNames, 0, 2).Draw(t, "links")...)
	a.InputType = inputTypes.Draw(t, "input type")
	a.SLO = serving.Duration(rapid.SampledFrom([]time.Duration{time.Second, time.Second, time.Second, time.Minute, time.Minute, 0}).Draw(t, "slo"))
	a.OutputType = rapid.SampledFrom([]serving.OutputType{"", "", "label"}).Draw(t, "output type")
	a.Policy = rapid.SampledFrom(policies).Draw(t, "policy")
	a.Description = rapid.SampledFrom([]string{"", "about a\n\u00e9"}).Draw(t, "description")
	a.DefaultOutput = rapid.SampledFrom([]string{"", "x", "not UTF-8: \xff"}).Draw(t, "default")
	return a
}

func drawVersion(t *rapid.T) serving.Version {
	v := version(modelNames.Draw(t, "model"), versionNames.Draw(t, "version"))
	v.InputType = inputTypes.Draw(t, "input type")
	v.Description = rapid.SampledFrom([]string{"", "", "", "a forest"}).Draw(t, "description")
	v.Labels = rapid.SampledFrom([][]string{nil, {}, {"x"}}).Draw(t, "labels")
	v.Deployed = rapid.SampledFrom([]*serving.Deployed{nil, {By: "liar", Commit: "c1"}, {Commit: "c2"}}).Draw(t, "deployed")
	v.Prepared = rapid.IntRange(0, 3).Draw(t, "prepared") == 0
	v.Container.Env = rapid.SampledFrom([]map[string]string{nil, nil, nil, {"TOKEN": "s3cret-1"}, {"TOKEN": "s3cret-2", "K": ""}}).Draw(t, "env")
	if rapid.IntRange(0, 5).Draw(t, "bundle") == 0 {
		v.Container.Bundle = "sha256:" + strings.Repeat("0", 64)
		v.Container.BundleURL = rapid.SampledFrom([]string{"", "https://u:s3cret@models.example/b?sig=s3cret"}).Draw(t, "bundle url")
	}
	if rapid.IntRange(0, 3).Draw(t, "stages") == 0 {
		if v.Container.Bundle == "" {
			v.Container.Command = []string{"serve"}
		}
		v.Stages = rapid.SampledFrom([]serving.Pipeline{
			{{Name: "a", CPUs: []int{}, After: []string{}}, {Name: "b", Batch: serving.StageBatch{Strategy: "aimd", Delay: serving.Duration(time.Millisecond)}}},
			{{Name: "a", Code: "m:A", Workers: 2, CPUs: []int{1, 2}}, {Name: "b", After: []string{"input"}}, {Name: "c", After: []string{"a", "b"}, Idempotent: true}},
			{{Name: "a"}, {Name: "a"}}, // not two of one name
		}).Draw(t, "pipeline")
	}
	return v
}

func drawKey(t *rapid.T) serving.Key {
	k := key(keyIDs.Draw(t, "key"), rapid.SampledFrom([]string{"ci", "anna", ""}).Draw(t, "name"))
	k.Role = rapid.SampledFrom([]serving.Role{serving.RoleQuery, serving.RoleDeployer, serving.RoleAdmin, "root"}).Draw(t, "role")
	k.Apps = rapid.SampledFrom([][]string{nil, nil, {}, {"a", "unknown"}}).Draw(t, "apps")
	k.Expires = rapid.SampledFrom([]time.Time{{}, k.Created.Add(time.Hour)}).Draw(t, "expires")
	k.Limit = rapid.SampledFrom([]*serving.Limit{nil, nil, {PerSecond: 0.5, Burst: 3}, {}}).Draw(t, "limit")
	return k
}

func drawStream(t *rapid.T) serving.Stream {
	return serving.Stream{
		Name: appNames.Draw(t, "stream"), Kind: rapid.SampledFrom([]serving.StreamKind{serving.DataStream, serving.ModelStream, "other"}).Draw(t, "kind"),
		Input: rapid.SampledFrom([][]string{nil, {"in"}, {"in", "more"}}).Draw(t, "input"), Output: "out", DeadLetter: "dead",
		Suspension: rapid.SampledFrom([]*serving.Suspension{nil, {Reason: "of the caller"}}).Draw(t, "suspension"),
	}
}

func drawID(t *rapid.T) serving.ModelID {
	return id(modelNames.Draw(t, "model"), versionNames.Draw(t, "version"))
}

func drawChange(t *rapid.T) catalog.Change {
	switch rapid.IntRange(0, 17).Draw(t, "change") {
	case 0:
		return catalog.PutApp{App: drawApp(t), Create: rapid.Bool().Draw(t, "create")}
	case 1:
		return catalog.DeleteApp{Name: appNames.Draw(t, "app")}
	case 2:
		return catalog.PutVersion{Version: drawVersion(t), KeepCurrent: rapid.Bool().Draw(t, "keep"), Replace: rapid.Bool().Draw(t, "replace")}
	case 3:
		return catalog.DeleteVersion{ID: drawID(t)}
	case 4:
		return catalog.Link{App: appNames.Draw(t, "app"), Model: modelNames.Draw(t, "model")}
	case 5:
		return catalog.Unlink{App: appNames.Draw(t, "app"), Model: modelNames.Draw(t, "model")}
	case 6:
		return catalog.AddKey{Key: drawKey(t)}
	case 7:
		return catalog.RevokeKey{ID: keyIDs.Draw(t, "key")}
	case 8:
		return drawFile(t).change(rapid.Bool().Draw(t, "keep"))
	case 9:
		return catalog.SetServing{drawID(t)}
	case 10:
		return catalog.SetScale{ID: drawID(t), Replicas: rapid.IntRange(0, 2).Draw(t, "replicas")}
	case 11:
		return catalog.DeleteModel{Name: modelNames.Draw(t, "model")}
	case 12:
		return catalog.PutStream{Stream: drawStream(t)}
	case 13:
		return catalog.DeleteStream{Name: appNames.Draw(t, "stream")}
	case 14:
		return catalog.SuspendStream{Name: appNames.Draw(t, "stream"), Suspension: serving.Suspension{
			Since: time.Unix(rapid.Int64Range(0, 9).Draw(t, "since"), 0).UTC(), Reason: rapid.SampledFrom([]string{"", "bad"}).Draw(t, "reason"),
		}}
	case 15:
		return catalog.ResumeStream{Name: appNames.Draw(t, "stream")}
	case 16:
		return catalog.Renew{Old: serving.Definition{ModelID: drawID(t), Generation: "another"}}
	}
	return catalog.SetCurrent{ID: drawID(t)}
}

// file is what a configuration file gives to Merge.
type file struct {
	apps     []serving.App
	versions []serving.Version
	current  map[string]string
}

func (f file) merge(cat *serving.Catalog) (*serving.Catalog, catalog.Report, error) {
	return catalog.Merge(cat, f.apps, f.versions, f.current)
}

// change is the same as a change.
func (f file) change(keep bool) catalog.Import {
	return catalog.Import{Apps: f.apps, Versions: f.versions, Current: f.current, Keep: keep, Replace: true}
}

func drawFile(t *rapid.T) file {
	return file{
		apps:     rapid.SliceOfNDistinct(rapid.Custom(drawApp), 0, 2, func(a serving.App) string { return a.Name }).Draw(t, "apps"),
		versions: rapid.SliceOfNDistinct(rapid.Custom(drawVersion), 0, 4, func(v serving.Version) serving.ModelID { return v.ModelID }).Draw(t, "versions"),
		current:  rapid.MapOfN(modelNames, versionNames, 0, 1).Draw(t, "current"),
	}
}

// drawCatalog draws a catalog that the API and the file have changed in turns.
func drawCatalog(t *rapid.T) *serving.Catalog {
	cat := &serving.Catalog{}
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		if next, err := drawStep(t, cat); err == nil {
			cat = next
		}
	}
	return cat
}

func drawStep(t *rapid.T, cat *serving.Catalog) (*serving.Catalog, error) {
	if rapid.IntRange(0, 9).Draw(t, "step") == 0 {
		next, _, err := drawFile(t).merge(cat)
		return next, err
	}
	change := drawChange(t)
	if rapid.Bool().Draw(t, "signed") {
		change = catalog.Signed{Change: change, By: serving.Author{Who: "anna"}}
	}
	return catalog.Apply(cat, change, 0)
}
