package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

func TestPolicies(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "policies.toml"), user, nil)
	for i, want := range []serving.App{{
		Name:       "digits",
		OutputType: serving.OutputLabel,
		Weight:     2,
		Policy: serving.PolicySpec{
			Kind: serving.PolicyExp4, Models: []string{"large", "small"}, Most: 2, ByCost: true, Eta: 0.3, Mixing: 0.01,
			Scope: serving.ScopeUserContext, RecordSeconds: 60, Costs: map[string]float64{"small": 1, "large": 2.5},
		},
	}, {
		Name: "rollout",
		Policy: serving.PolicySpec{
			Kind: serving.PolicyVersions, Canary: "2", Share: 0.1, RampSeconds: 600, Sticky: true,
			MinAnswers: 50, MaxFailures: 0.05, MaxLoss: 0.2,
		},
	}, {
		Name:       "vote",
		OutputType: serving.OutputVector,
		Policy: serving.PolicySpec{
			Kind: serving.PolicyVote, Weights: map[string]float64{"small": 1, "large": 2}, Agreement: 0.6, WithinMicros: 5000,
			Loss: serving.LossAbsolute, Scale: 10,
		},
	}, {
		Name:   "greedy",
		Policy: serving.PolicySpec{Kind: serving.PolicyEpsilonGreedy, Epsilon: 0.2, Discount: 0.99},
	}, {
		Name:   "adversary",
		Policy: serving.PolicySpec{Kind: serving.PolicyExp3, Gamma: 0.1},
	}, {
		Name:   "contextual",
		Policy: serving.PolicySpec{Kind: serving.PolicyLinUCB, Alpha: 0.5, Features: 16},
	}, {
		Name:       "cascade",
		OutputType: serving.OutputJSON,
		Policy:     serving.PolicySpec{Kind: serving.PolicyCascade, Confidence: 0.9, Qualifier: "margin"},
	}, {
		Name:   "prefer",
		Policy: serving.PolicySpec{Kind: serving.PolicyPrefer, Order: []string{"large", "small:1"}},
	}, {
		Name: "own",
		Policy: serving.PolicySpec{
			Kind: serving.PolicyCustom, Model: "judge",
			Fallback: &serving.PolicySpec{Kind: serving.PolicyGuaranteed, Models: []string{"small:1", "large"}, Most: 2, WithinMicros: 1000},
		},
	}} {
		got := c.Apps[i]
		equal(t, want.Name, []any{got.Name, got.OutputType, got.Weight, got.Policy}, []any{want.Name, want.OutputType, want.Weight, want.Policy})
	}
}

// TestPolicyStrings reads policies as they are shown.
func TestPolicyStrings(t *testing.T) {
	text := readTestdata(t, "policies.toml")
	_, models, _ := strings.Cut(text, "[[model]]")
	for _, a := range mustLoad(t, text, user, nil).Apps {
		app := "[[app]]\nname = 'a'\ninput_type = 'floats'\nmodels = ['" + strings.Join(a.Models, "', '") + "']\n"
		output := "output_type = '" + string(a.OutputType) + "'\n"
		if a.OutputType == serving.OutputAny {
			output = ""
		}
		c := mustLoad(t, app+output+"policy = "+a.Policy.String()+"\n[[model]]"+models, user, nil)
		want := a.Policy
		want.Kind = want.KindName()
		equal(t, a.Name, c.Apps[0].Policy, want)
	}
}

// TestKindsHaveHelp holds that the help of kind names every kind.
func TestKindsHaveHelp(t *testing.T) {
	f, _ := reflect.TypeFor[serving.PolicySpec]().FieldByName("Kind")
	for _, kind := range serving.PolicyKinds() {
		if !strings.Contains(f.Tag.Get("help"), kind) {
			t.Errorf("the help of kind does not name %s", kind)
		}
	}
}

func TestPolicySettings(t *testing.T) {
	c := mustLoad(t, readTestdata(t, "policies.toml"), user, nil)
	shown := map[string]string{}
	for _, s := range c.Settings() {
		shown[s.Name] = s.Value + " (" + s.Source + ")"
	}
	for name, want := range map[string]string{
		"app[0].output_type":     `label (topsail.toml:4)`,
		"app[0].weight":          `2 (topsail.toml:5)`,
		"app[0].priority":        `1 (topsail.toml:6)`,
		"app[0].policy.kind":     `exp4 (topsail.toml:11)`,
		"app[0].policy.models":   `["large", "small"] (topsail.toml:12)`,
		"app[0].policy.costs":    `{ "large" = 2.5, "small" = 1 } (topsail.toml:20)`,
		"app[1].policy.sticky":   `true (topsail.toml:28)`,
		"app[8].policy.fallback": `{ kind = "guaranteed", models = ["small:1", "large"], most = 2, within_micros = 1000 } (topsail.toml:76)`,
	} {
		if shown[name] != want {
			t.Errorf("%s is shown as %s, want %s", name, shown[name], want)
		}
	}
}
