package serving

import (
	"math"
	"strings"
	"testing"
)

// appWith is an app that links three models and has a policy.
func appWith(p PolicySpec) *App {
	a := goodApp()
	a.Models, a.Policy = []string{"a", "b", "c"}, p
	return &a
}

func versionsOf(p PolicySpec) *App {
	p.Kind = PolicyVersions
	a := appWith(p)
	a.Models = []string{"a"}
	return a
}

func takingOutputs(t OutputType, p PolicySpec) *App {
	a := appWith(p)
	a.OutputType = t
	return a
}

func takingInputs(t InputType, p PolicySpec) *App {
	a := appWith(p)
	a.InputType = t
	return a
}

func TestPoliciesThatAreRight(t *testing.T) {
	fallback := &PolicySpec{Kind: PolicyCascade, Models: []string{"a:1", "b"}, Confidence: 0.5}
	for _, a := range []*App{
		appWith(PolicySpec{}),
		appWith(PolicySpec{Model: "c:2"}),
		versionsOf(PolicySpec{Weights: map[string]float64{"1": 9, "2": 1, "3": 0}, Sticky: true, MinAnswers: 10, MaxFailures: 0.1}),
		versionsOf(PolicySpec{Canary: "2", Share: 0.1, RampSeconds: 60}),
		appWith(PolicySpec{Kind: PolicyShadow, Model: "a", Models: []string{"b", "c"}, Share: 1}),
		appWith(PolicySpec{Kind: PolicyVote, Models: []string{"b", "a:1"}, Weights: map[string]float64{"a": 2, "b": 1}, Costs: map[string]float64{"a": 3}}),
		appWith(PolicySpec{Kind: PolicyFirstAcceptable, Confidence: -7, Qualifier: "margin"}),
		appWith(PolicySpec{Kind: PolicyExp3, Gamma: 1, Eta: 1e6, Scope: ScopeContext, RecordSeconds: 604800}),
		appWith(PolicySpec{Kind: PolicyThompson, Loss: LossAbsolute, Scale: 2}),
		takingOutputs(OutputNumber, PolicySpec{Kind: PolicyExp4, Loss: LossSquared}),
		takingOutputs(OutputVector, PolicySpec{Kind: PolicyMean}),
		takingOutputs(OutputJSON, PolicySpec{Kind: PolicyVote}),
		answering(PolicySpec{Kind: PolicyMean}, vectorOutput),
		answering(PolicySpec{Kind: PolicyExp4, Loss: LossSquared}, vectorOutput),
		reading(OutputLabel, PolicySpec{Kind: PolicyExp4}, Tensor{Name: "class", Type: ElementType(Int64)}),
		takingInputs(Ints, PolicySpec{Kind: PolicyLinUCB, Features: 64}),
		appWith(PolicySpec{Kind: PolicyCustom, Model: "judge", WithinMicros: 100, Fallback: fallback}),
	} {
		if err := a.Check(); err != nil {
			t.Errorf("%s: %v", a.Policy.String(), err)
		}
	}
}

// vectorOutput is an output of a signature.
var vectorOutput = Tensor{Name: "y", Type: ElementType(Float32), Shape: []int{3}}

// answering is an app with a policy and a signature of outputs.
func answering(policy PolicySpec, outputs ...Tensor) *App {
	return reading(OutputAny, policy, outputs...)
}

// reading is answering, with an output type.
func reading(out OutputType, policy PolicySpec, outputs ...Tensor) *App {
	a := takingOutputs(out, policy)
	a.Signature = &Signature{Outputs: outputs}
	return a
}

// A version whose outputs the policy of an app cannot calculate with is refused when it is linked.
func TestOutputsThatAPolicyCannotRead(t *testing.T) {
	vector, text := []Tensor{vectorOutput}, []Tensor{{Name: "class", Type: ElementType(String)}}
	mean := PolicySpec{Kind: PolicyMean}
	for _, c := range []struct {
		app     *App
		outputs []Tensor
		want    string // empty: they are taken
	}{
		{appWith(mean), nil, ""}, {appWith(mean), []Tensor{{Name: "y", Type: ElementType(Float64)}}, ""}, {takingOutputs(OutputVector, mean), vector, ""},
		{appWith(PolicySpec{}), text, ""}, {appWith(PolicySpec{Kind: PolicyVote}), vector, ""},
		{appWith(mean), vector, `policy: kind "mean" reads outputs as number, and in model "m" "y" is float32[3]: set output_type to "vector"`},
		{appWith(mean), text, `policy: kind "mean" takes outputs that are number, vector, and in model "m" "class" is string`},
		{takingOutputs(OutputVector, mean), append(vector, text...), `policy: kind "mean" calculates with one output, and model "m" has 2`},
		{appWith(PolicySpec{Kind: PolicyCustom, Model: "judge", Fallback: &mean}), text, `policy: fallback: kind "mean" takes`},
	} {
		v := &Version{ModelID: ModelID{Model: "m", Version: "1"}, InputType: Doubles, Signature: &Signature{Outputs: c.outputs}}
		err := c.app.CheckOutputs(v)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.outputs, err, c.want)
		}
		a := *c.app
		a.Name, a.Models, a.InputType = "a", []string{"m"}, Doubles
		cat := &Catalog{Apps: map[string]*App{"a": &a}, Models: map[string]*Model{"m": {Name: "m", Current: "1", Versions: map[string]*Version{"1": v}}}}
		if err := cat.Check(); c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("linked: %v, want %q", err, c.want)
		}
	}
}

func TestPoliciesThatAreWrong(t *testing.T) {
	custom := func(fallback PolicySpec) *App {
		return appWith(PolicySpec{Kind: PolicyCustom, Model: "judge", Fallback: &fallback})
	}
	for want, a := range map[string]*App{
		`"exp3" has no option agreement: it has models, scope, gamma, eta, mixing`:                                   appWith(PolicySpec{Kind: PolicyExp3, Agreement: 0.5}),
		`"single" has no option fallback: it has model`:                                                              appWith(PolicySpec{Fallback: &PolicySpec{}}),
		`kind "linucb" takes ints, floats or doubles, and the app takes strings`:                                     takingInputs(Strings, PolicySpec{Kind: PolicyLinUCB}),
		`kind "median" takes outputs that are number, vector, and the app's output_type is "label"`:                  takingOutputs(OutputLabel, PolicySpec{Kind: PolicyMedian}),
		`kind "exp4" takes outputs that are label, number, vector, and the app's output_type is "json"`:              takingOutputs(OutputJSON, PolicySpec{Kind: PolicyExp4}),
		`loss "absolute" compares numbers, and outputs are taken for json: set output_type to "number" or "vector"`:  takingOutputs(OutputJSON, PolicySpec{Kind: PolicyVote, Loss: LossAbsolute}),
		`loss "squared" compares numbers, and outputs are taken for label: set output_type to "number" or "vector"`:  appWith(PolicySpec{Kind: PolicyExp4, Loss: LossSquared}),
		`loss "absolute" compares numbers, and outputs are taken for label: set output_type to "number" or "vector"`: answering(PolicySpec{Kind: PolicyUCB1, Loss: LossAbsolute}, Tensor{Name: "class", Type: ElementType(String)}),
		`kind "mean" takes outputs that are number, vector, and in the signature "class" is string`:                  answering(PolicySpec{Kind: PolicyMean}, Tensor{Name: "class", Type: ElementType(String)}),
		`kind "logistic" takes outputs that are number, and in the signature "y" is float32[3]`:                      answering(PolicySpec{Kind: PolicyLogistic}, vectorOutput),
		`kind "stacking" calculates with one output, and the signature has 2`:                                        answering(PolicySpec{Kind: PolicyStacking}, vectorOutput, Tensor{Name: "z", Type: ElementType(Float64)}),
		`kind "mean" reads outputs as number, and in the signature "y" is float32[3]: set output_type to "vector"`:   reading(OutputNumber, PolicySpec{Kind: PolicyMean}, vectorOutput),
		`loss "log" is unknown: use "zero_one", "absolute" or "squared"`:                                             appWith(PolicySpec{Loss: "log"}),
		`scale is for the losses "absolute" and "squared"`:                                                           appWith(PolicySpec{Scale: 2}),
		`scope "me" is unknown: use "app", "user", "context" or "user_context"`:                                      appWith(PolicySpec{Kind: PolicyUCB1, Scope: "me"}),
		`models: "A" is not the name of a model`:                                                                     appWith(PolicySpec{Kind: PolicyVote, Models: []string{"A"}}),
		`models: "A:1" is not the name of a model`:                                                                   appWith(PolicySpec{Kind: PolicyVote, Models: []string{"A:1"}}),
		`models: "" is not the name of a model`:                                                                      appWith(PolicySpec{Kind: PolicyVote, Models: []string{""}}),
		`models: "a:" is not a version of a model: use model:version`:                                                appWith(PolicySpec{Kind: PolicyVote, Models: []string{"a:"}}),
		`models names model "a" twice`:                                                                               appWith(PolicySpec{Kind: PolicyVote, Models: []string{"a:1", "a:2"}}),
		`weights names model "b" twice`:                                                                              appWith(PolicySpec{Kind: PolicyVote, Weights: map[string]float64{"b": 1, "b:1": 1}}),
		`costs: "a:1" names a version, and costs are of models: use "a"`:                                             appWith(PolicySpec{Costs: map[string]float64{"a:1": 1}}),
		`costs of "a" must be above 0 and at most 1e+09`:                                                             appWith(PolicySpec{Costs: map[string]float64{"a": math.NaN()}}),
		`weights of "a" must be between 0 and 1e+09`:                                                                 appWith(PolicySpec{Kind: PolicyVote, Weights: map[string]float64{"a": math.Inf(1)}}),
		`weights must not all be 0`:                                                                                  appWith(PolicySpec{Kind: PolicyMean, Weights: map[string]float64{"a": 0}}),
		`confidence must be a number`:                                                                                appWith(PolicySpec{Kind: PolicyCascade, Confidence: math.NaN(), Qualifier: "x"}),
		`confidence must be between 0 and 1, unless it is for a qualifier`:                                           appWith(PolicySpec{Kind: PolicyCascade, Confidence: 1.1}),
		`qualifier must be at most 128 bytes long`:                                                                   appWith(PolicySpec{Kind: PolicyBest, Qualifier: strings.Repeat("q", 129)}),
		`"versions" needs weights, or a canary with its share`:                                                       versionsOf(PolicySpec{}),
		`"versions" takes weights or a canary, not both`:                                                             versionsOf(PolicySpec{Canary: "2", Weights: map[string]float64{"1": 1}}),
		`share and ramp_seconds need a canary`:                                                                       versionsOf(PolicySpec{Share: 0.5, Weights: map[string]float64{"1": 1}}),
		`"versions" is for apps that link one model, and this one links 3`:                                           appWith(PolicySpec{Kind: PolicyVersions, Canary: "2"}),
		`weights: "x y" is not a version`:                                                                            versionsOf(PolicySpec{Weights: map[string]float64{"x y": 1}}),
		`canary "a:1" is not a version`:                                                                              versionsOf(PolicySpec{Canary: "a:1"}),
		`"custom" needs model, the model that decides; it takes strings`:                                             appWith(PolicySpec{Kind: PolicyCustom}),
		`model "judge:1" names a version, and the current one decides: use "judge"`:                                  appWith(PolicySpec{Kind: PolicyCustom, Model: "judge:1"}),
		`model "a" decides, and cannot be linked to the app as well`:                                                 appWith(PolicySpec{Kind: PolicyCustom, Model: "a"}),
		`fallback: kind "x" is unknown: use one of ` + strings.Join(PolicyKinds(), ", "):                             custom(PolicySpec{Kind: "x"}),
		`fallback: kind "exp3" learns, and a fallback does not: use one of ` + strings.Join(fallbackKinds(), ", "):   custom(PolicySpec{Kind: PolicyExp3}),
		`fallback: loss belongs to the policy, not to its fallback`:                                                  custom(PolicySpec{Loss: LossZeroOne}),
		`fallback: "single" has no option fallback: it has model`:                                                    custom(PolicySpec{Fallback: &PolicySpec{}}),
		`fallback: models names model "a" twice`:                                                                     custom(PolicySpec{Kind: PolicyVote, Models: []string{"a", "a"}}),
	} {
		if err := a.Check(); err == nil || err.Error() != `app "wine": policy: `+want {
			t.Errorf("%s: got\n%v\nwant\n%s", a.Policy.String(), err, want)
		}
	}
}

// TestNumbersOutOfRange gives each number of a policy what it cannot be. The options
// need not be those of one kind: the numbers are told all the same.
func TestNumbersOutOfRange(t *testing.T) {
	floats := map[string]func(*PolicySpec) *float64{
		"share":        func(p *PolicySpec) *float64 { return &p.Share },
		"epsilon":      func(p *PolicySpec) *float64 { return &p.Epsilon },
		"gamma":        func(p *PolicySpec) *float64 { return &p.Gamma },
		"eta":          func(p *PolicySpec) *float64 { return &p.Eta },
		"mixing":       func(p *PolicySpec) *float64 { return &p.Mixing },
		"discount":     func(p *PolicySpec) *float64 { return &p.Discount },
		"alpha":        func(p *PolicySpec) *float64 { return &p.Alpha },
		"agreement":    func(p *PolicySpec) *float64 { return &p.Agreement },
		"scale":        func(p *PolicySpec) *float64 { return &p.Scale },
		"max_failures": func(p *PolicySpec) *float64 { return &p.MaxFailures },
		"max_loss":     func(p *PolicySpec) *float64 { return &p.MaxLoss },
	}
	refused := func(option string, x float64, p PolicySpec) {
		if err := appWith(p).Check(); err == nil || !strings.Contains(err.Error(), "policy: "+option+" must be between 0 and ") {
			t.Errorf("%s = %v: %v", option, x, err)
		}
	}
	for option, field := range floats {
		for _, x := range []float64{-1e-9, 1e6 + 1, math.NaN(), math.Inf(1), math.Inf(-1)} {
			var p PolicySpec
			*field(&p) = x
			refused(option, x, p)
		}
	}
	for _, n := range []int{-1, math.MinInt, math.MaxInt} {
		x := float64(n)
		refused("most", x, PolicySpec{Most: n})
		refused("min_answers", x, PolicySpec{MinAnswers: n})
		refused("features", x, PolicySpec{Features: n})
		refused("ramp_seconds", x, PolicySpec{RampSeconds: n})
		refused("record_seconds", x, PolicySpec{RecordSeconds: n})
		refused("within_micros", x, PolicySpec{WithinMicros: int64(n)})
	}
}

// TestAllIsSaidAtOnce wants each error on its own, always in the same order.
func TestAllIsSaidAtOnce(t *testing.T) {
	a := appWith(PolicySpec{
		Kind: PolicyVote, Agreement: 2, Models: []string{"A"}, RecordSeconds: -1,
		Weights: map[string]float64{"b": -1, "c": -1, "a": -1},
	})
	const want = `app "wine": policy: models: "A" is not the name of a model
app "wine": policy: agreement must be between 0 and 1
app "wine": policy: record_seconds must be between 0 and 604800
app "wine": policy: weights of "a" must be between 0 and 1e+09
app "wine": policy: weights of "b" must be between 0 and 1e+09
app "wine": policy: weights of "c" must be between 0 and 1e+09`
	for range 10 {
		err := a.Check()
		if err == nil || err.Error() != want {
			t.Fatalf("got\n%v\nwant\n%s", err, want)
		}
		if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != 6 {
			t.Fatalf("%d errors are joined", n)
		}
	}
}
