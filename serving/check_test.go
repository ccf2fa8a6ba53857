package serving

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

func goodApp() App {
	return App{Name: "wine", InputType: Doubles, DefaultOutput: "-1", SLO: Duration(100 * time.Millisecond), Models: []string{"forest"}}
}

func goodVersion() Version {
	return Version{ModelID: ModelID{Model: "forest", Version: "1"}, InputType: Doubles, Replicas: 1, Container: Container{Command: []string{"x"}}}
}

func TestAppCheck(t *testing.T) {
	a := goodApp()
	require.NoError(t, a.Check())
	for want, spoil := range map[string]func(*App){
		"app name":               func(a *App) { a.Name = "a b" },
		"input_type":             func(a *App) { a.InputType = 0 },
		"latency_slo_micros":     func(a *App) { a.SLO = 0 },
		"rounding step":          func(a *App) { a.Cache.Round = -1 },
		"only numbers":           func(a *App) { a.InputType, a.Cache.Round = Strings, 1 },
		"time to live":           func(a *App) { a.Cache.TTL = Duration(-1) },
		"policy: kind \"x\"":     func(a *App) { a.Policy.Kind = "x" },
		"weight":                 func(a *App) { a.Weight = math.NaN() },
		"weight must be":         func(a *App) { a.Weight = 1001 },
		"output_type \"labels\"": func(a *App) { a.OutputType = "labels" },
		"twice":                  func(a *App) { a.Models = []string{"m", "m"} },
		"example":                func(a *App) { a.Example = "[1," },
		"has 1001 bytes":         func(a *App) { a.Description = strings.Repeat("x", 1001) },
		"text in UTF-8":          func(a *App) { a.Description = "\xff" },
	} {
		a := goodApp()
		spoil(&a)
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestVersionCheck(t *testing.T) {
	v := goodVersion()
	require.NoError(t, v.Check())
	for want, spoil := range map[string]func(*Version){
		"model name":        func(v *Version) { v.Model = "Forest" },
		"version \"a:b\"":   func(v *Version) { v.ModelID.Version = "a:b" },
		"input_type":        func(v *Version) { v.InputType = 0 },
		"input_length":      func(v *Version) { v.InputType, v.InputLength = Strings, 3 },
		"replicas":          func(v *Version) { v.Replicas = -1 },
		"needs max_size":    func(v *Version) { v.Batch.Strategy = "fixed" },
		"pad needs":         func(v *Version) { v.Batch.Pad = true },
		"strategy \"x\"":    func(v *Version) { v.Batch.Strategy = "x" },
		"max_size must":     func(v *Version) { v.Batch.MaxSize = -1 },
		"delay_micros":      func(v *Version) { v.Batch.Delay = Duration(time.Minute) },
		"give one":          func(v *Version) { v.Container.Addr, v.Container.Protocol = "127.0.0.1:1", "v1" },
		"protocol = \"v1\"": func(v *Version) { v.Container = Container{Addr: "127.0.0.1:1"} },
		"a command or an":   func(v *Version) { v.Container = Container{Protocol: "v1"} },
		"answers one number": func(v *Version) {
			v.InputType, v.Container = Tensors, Container{Protocol: "v1", Addr: "127.0.0.1:1"}
			v.Signature = &Signature{Inputs: []Tensor{{Name: "x", Type: ElementType(Float64)}}}
		},
		"carries inputs alone": func(v *Version) { v.Session, v.Container = true, Container{Protocol: "v1", Addr: "127.0.0.1:1"} },
		"bundles speak": func(v *Version) {
			v.Container = Container{Protocol: "v1", Bundle: "sha256:" + strings.Repeat("0", 64)}
		},
		"env sets PORT":     func(v *Version) { v.Container.Protocol, v.Container.Env = "v1", map[string]string{"PORT": "1"} },
		"is for an image":   func(v *Version) { v.Container.Protocol, v.Container.Port = "v1", 7000 },
		"container_port mu": func(v *Version) { v.Container = Container{Protocol: "v1", Image: "i", Port: 70000} },
		"protocol \"v3\"":   func(v *Version) { v.Container.Protocol = "v3" },
		"connections":       func(v *Version) { v.Container.Connections = -1 },
		"description has":   func(v *Version) { v.Description = strings.Repeat("x", 1001) },
	} {
		v := goodVersion()
		spoil(&v)
		if err := v.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func goodPipeline() Pipeline {
	return Pipeline{
		{Name: "decode", Workers: 2, CPUs: []int{0, 1}},
		{Name: "embed", Batch: StageBatch{Strategy: "aimd", MaxSize: 64, Delay: Duration(time.Millisecond)}, Idempotent: true},
		{Name: "words", After: []string{"input"}, Batch: StageBatch{Strategy: "none"}},
		{Name: "rank", After: []string{"embed", "words"}, Batch: StageBatch{Strategy: "fixed", MaxSize: 16}},
	}
}

func TestStagesOfAVersion(t *testing.T) {
	v := goodVersion()
	v.Stages = goodPipeline()
	v.Batch.Strategy = "aimd" // as files and the API complete it
	require.NoError(t, v.Check())
	for want, spoil := range map[string]func(*Version){
		"stages need version 2":                     func(v *Version) { v.Container = Container{Addr: "127.0.0.1:1", Protocol: "v1"} },
		"need a command or a bundle":                func(v *Version) { v.Container = Container{} },
		"give each stage its own":                   func(v *Version) { v.Batch.MaxSize = 8 },
		"batch is for versions without":             func(v *Version) { v.Batch.Strategy = "quantile" },
		`stage "words": batch needs a strategy`:     func(v *Version) { v.Stages[2].Batch.MaxSize = 8 },
		`stage "decode": batch needs a strategy`:    func(v *Version) { v.Stages[0].Batch.Delay = Duration(time.Millisecond) },
		`stage "rank": model and app are for the`:   func(v *Version) { v.Stages[3].Model = "m" },
		`stage "words": model and app are for the`:  func(v *Version) { v.Stages[2].App = "a" },
		`version "1": stage "decode": workers must`: func(v *Version) { v.Stages[0].Workers = 99 },
	} {
		v := v
		v.Stages = goodPipeline()
		spoil(&v)
		if err := v.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	v.Stages[0].Workers, v.Stages[0].CPUs = -1, []int{-1}
	if err := v.Check(); strings.Count(err.Error(), `stage "decode": `) != 2 {
		t.Errorf("not every problem says its stage: %v", err)
	}
}

// A stage of an app asks a model or another app, and no app comes back to itself.
func TestStagesThatAskApps(t *testing.T) {
	app := func(name string, asks ...string) *App {
		a := goodApp()
		a.Name, a.Models, a.Policy = name, nil, PolicySpec{}
		for _, other := range asks {
			a.Stages = append(a.Stages, Stage{Name: "ask-" + other, App: other})
		}
		return &a
	}
	good := app("wine", "grapes", "cellar")
	require.NoError(t, good.Check())
	if got := good.AskedApps(); !slices.Equal(got, []string{"grapes", "cellar"}) || len(good.Asked()) != 0 {
		t.Errorf("it asks the apps %v and the models %v", got, good.Asked())
	}
	for want, stage := range map[string]Stage{
		"it names a model and an app":   {Name: "a", Model: "m", App: "grapes"},
		"it calls the app itself":       {Name: "a", App: "wine"},
		`stage "a": app name "/" : use`: {Name: "a", App: "/"},
		`stage "a": model name "": use`: {Name: "a"},
	} {
		bad := app("wine")
		bad.Stages = Pipeline{stage}
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, " :", ":")) {
			t.Errorf("%+v: %v, want %q", stage, err, want)
		}
	}

	cat := Catalog{Apps: map[string]*App{"wine": good, "grapes": app("grapes", "soil"), "soil": app("soil", "gone")}}
	require.NoError(t, cat.Check())
	cat.Apps["soil"] = app("soil", "wine")
	if err := cat.Check(); err == nil || !strings.Contains(err.Error(), `app "wine" calls itself by way of app "soil"`) {
		t.Errorf("a circle: %v", err)
	}
	cat.Apps = map[string]*App{}
	for i := range MaxNested + 2 {
		cat.Apps[fmt.Sprint("a", i)] = app(fmt.Sprint("a", i), fmt.Sprint("a", i+1))
	}
	if err := cat.Check(); err == nil || !strings.Contains(err.Error(), "more than 8 apps deep") {
		t.Errorf("a long chain: %v", err)
	}
}

func TestCatalogCheck(t *testing.T) {
	a, v := goodApp(), goodVersion()
	cat := Catalog{
		Apps:   map[string]*App{a.Name: &a},
		Models: map[string]*Model{"forest": {Name: "forest", Current: "1", Versions: map[string]*Version{"1": &v}}},
	}
	require.NoError(t, cat.Check())
	if cat.Version(v.ModelID) != &v || cat.Version(ModelID{"forest", "2"}) != nil || cat.Version(ModelID{"x", "1"}) != nil {
		t.Error("Version does not find what is there, or finds what is not")
	}
	v.InputType = Ints
	cat.Models["forest"].Current = "1"
	if err := cat.Check(); err == nil || !strings.Contains(err.Error(), "takes integers") {
		t.Errorf("types that differ: %v", err)
	}
	cat.Models["forest"].Current = "2"
	if err := cat.Check(); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a current version that does not exist: %v", err)
	}
	delete(cat.Models, "forest")
	if err := cat.Check(); err == nil || !strings.Contains(err.Error(), "links model") {
		t.Errorf("a link to nothing: %v", err)
	}
}
