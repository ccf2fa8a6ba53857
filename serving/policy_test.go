package serving

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// fullPolicy has every option, which no kind does.
func fullPolicy() PolicySpec {
	return PolicySpec{
		Kind: PolicyCustom, Model: "judge", Models: []string{"b", "a:2"}, Most: 2,
		Costs: map[string]float64{"a": 0.5, "b": 1e-3}, ByCost: true, Weights: map[string]float64{"a": 1, "b": 0},
		Canary: "2", Share: 0.1, RampSeconds: 60, Sticky: true, MinAnswers: 30, MaxFailures: 0.01, MaxLoss: 0.02,
		Loss: LossSquared, Scale: 10, Scope: ScopeUserContext, Epsilon: 0.2, Gamma: 0.3, Eta: 1.5, Mixing: 1e-4,
		Discount: 0.999, Alpha: 2, Features: 16, Agreement: 0.6, Confidence: 0.9, Qualifier: `the "margin"`,
		WithinMicros: 1500, Order: []string{"c", "a:2"}, Fallback: &PolicySpec{Kind: PolicyVote, Agreement: 1}, RecordSeconds: 3600,
	}
}

func TestEveryOptionBelongsToAKind(t *testing.T) {
	used := slices.Clone(everyPolicy)
	for _, kind := range policyKinds {
		used = append(used, kind.options...)
	}
	for _, option := range optionNames() {
		if !slices.Contains(used, option) {
			t.Errorf("no kind has option %s", option)
		}
	}
	for name, kind := range policyKinds {
		for _, option := range kind.options {
			if !slices.Contains(optionNames(), option) || slices.Contains(everyPolicy, option) {
				t.Errorf("%s lists %s, which is no option of its own", name, option)
			}
		}
	}
	for f, v := range reflect.ValueOf(fullPolicy()).Fields() {
		if v.IsZero() {
			t.Errorf("%s is %v in the full policy", f.Name, v)
		}
	}
}

// TestKindsAreDocumented holds the table of docs/configuration.md to policyKinds.
func TestKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	require.NoError(t, err)
	rows := map[string][]string{} // what is quoted in a row, by what is quoted first
	for row := range strings.Lines(string(page)) {
		if words := strings.Split(row, "`"); strings.HasPrefix(row, "| `") {
			var names []string
			for i := 3; i < len(words); i += 2 {
				names = append(names, words[i])
			}
			rows[words[1]] = names
		}
	}
	for name, kind := range policyKinds {
		got, want := rows[name], slices.Clone(kind.options)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s is documented with %v, and has %v", name, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	want := []string{
		"best", "cascade", "custom", "epsilon_greedy", "exp3", "exp4", "first_acceptable", "guaranteed", "hedge", "linucb",
		"logistic", "mean", "median", "prefer", "shadow", "single", "stacking", "thompson", "ucb1", "versions", "vote",
	}
	if got := PolicyKinds(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPolicyJSON(t *testing.T) {
	for _, want := range []PolicySpec{{}, fullPolicy()} {
		text, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := ParsePolicy(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, error %v, want %+v", text, got, err, want)
		}
	}
	if text, _ := json.Marshal(PolicySpec{}); string(text) != "{}" {
		t.Errorf("the zero policy is %s", text)
	}
}

func TestPolicyDefaults(t *testing.T) {
	var zero PolicySpec
	if zero.KindName() != "single" || zero.Learns() || zero.Record() != 15*time.Minute || zero.Within() != 0 || zero.Ramp() != 0 {
		t.Errorf("the zero policy is %q, learns %v, record %v, within %v, ramp %v", zero.KindName(), zero.Learns(), zero.Record(), zero.Within(), zero.Ramp())
	}
	full := fullPolicy()
	if !full.Learns() || full.Record() != time.Hour || full.Within() != 1500*time.Microsecond || full.Ramp() != time.Minute {
		t.Errorf("the full policy learns %v, record %v, within %v, ramp %v", full.Learns(), full.Record(), full.Within(), full.Ramp())
	}
}

func TestPolicyScope(t *testing.T) {
	for _, tt := range []struct {
		kind, scope      string
		user, perContext bool
	}{
		{PolicyExp3, "", true, false},
		{PolicyExp3, ScopeApp, false, false},
		{PolicyExp3, ScopeUser, true, false},
		{PolicyExp3, ScopeContext, false, true},
		{PolicyExp3, ScopeUserContext, true, true},
		{PolicyVersions, "", false, false},
	} {
		p := PolicySpec{Kind: tt.kind, Scope: tt.scope}
		if p.PerUser() != tt.user || p.PerContext() != tt.perContext {
			t.Errorf("%s with scope %q: per user %v, per context %v", tt.kind, tt.scope, p.PerUser(), p.PerContext())
		}
	}
}

func TestAcceptsInput(t *testing.T) {
	for kind := range policyKinds {
		for in := Bytes; in <= Strings; in++ {
			want := kind != PolicyLinUCB || in == Ints || in == Floats || in == Doubles
			if AcceptsInput(kind, in) != want {
				t.Errorf("%s accepts %v: %v", kind, in, !want)
			}
		}
	}
}

func TestOutputOf(t *testing.T) {
	for _, tt := range []struct {
		kind           string
		declared, want OutputType
	}{
		{"", OutputAny, OutputAny},
		{PolicyVote, OutputAny, OutputAny},
		{PolicyVote, OutputJSON, OutputJSON},
		{PolicyExp4, OutputAny, OutputLabel},
		{PolicyExp4, OutputVector, OutputVector},
		{PolicyMean, OutputAny, OutputNumber},
	} {
		p := PolicySpec{Kind: tt.kind}
		if got := p.OutputOf(tt.declared); got != tt.want {
			t.Errorf("%q takes %q for %q, want %q", tt.kind, tt.declared, got, tt.want)
		}
	}
}

func TestPolicyString(t *testing.T) {
	var zero PolicySpec
	if got := zero.String(); got != `{ kind = "single" }` {
		t.Errorf("the zero policy is %s", got)
	}
	full := fullPolicy()
	const want = `{ kind = "custom", model = "judge", models = ["b", "a:2"], order = ["c", "a:2"], most = 2, costs = { "a" = 0.5, "b" = 0.001 }, by_cost = true, ` +
		`weights = { "a" = 1, "b" = 0 }, canary = "2", share = 0.1, ramp_seconds = 60, sticky = true, min_answers = 30, max_failures = 0.01, ` +
		`max_loss = 0.02, loss = "squared", scale = 10, scope = "user_context", epsilon = 0.2, gamma = 0.3, eta = 1.5, mixing = 0.0001, ` +
		`discount = 0.999, alpha = 2, features = 16, agreement = 0.6, confidence = 0.9, qualifier = "the \"margin\"", within_micros = 1500, ` +
		`fallback = { kind = "vote", agreement = 1 }, record_seconds = 3600 }`
	if got := full.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
