package serving

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/schema"
)

// PolicySpec names the selection policy of an app, with its options. The zero value
// is "single". Which options a kind has stands in policyKinds, and App.Check refuses the
// others; zero stands for the default, which docs/selection.md gives. Models are named
// as they are linked, and "model:version" pins the version of them that is asked.
type PolicySpec struct {
	Kind string `json:"kind,omitempty" help:"the selection policy: single (the default), versions, shadow, epsilon_greedy, ucb1, thompson, exp3, linucb, exp4, vote, mean, median, best, logistic, stacking, guaranteed, first_acceptable, hedge, cascade, prefer or custom"`

	// The models to ask.
	Model   string             `json:"model,omitempty" help:"the model that answers; of custom, the model that decides; by default the first linked one"`
	Models  []string           `json:"models,omitempty" help:"the models to ask, in the order that matters to the kind; of shadow, the shadows; by default all linked models"`
	Order   []string           `json:"order,omitempty" help:"of prefer, the models from the most wanted to the last resort; by default the linked models in their order"`
	Most    int                `json:"most,omitempty" help:"most models asked for one query; 0 is no limit"`
	Costs   map[string]float64 `json:"costs,omitempty" help:"the cost of asking each model, relative to the others; measured by default"`
	ByCost  bool               `json:"by_cost,omitempty" help:"rank models by their worth per cost"`
	Weights map[string]float64 `json:"weights,omitempty" help:"of versions: share of the queries by version; of vote and mean: weight of the answers by model"`

	// versions, shadow and hedge. A version is judged against the one that has most of
	// the queries, and loses its share when it is worse.
	Canary      string  `json:"canary,omitempty" help:"the version that the kind versions tries out"`
	Share       float64 `json:"share,omitempty" help:"share of the queries that go to the canary or to shadows, or that hedge may send twice; 0 is the default"`
	RampSeconds int     `json:"ramp_seconds,omitempty" help:"time in which the canary grows to its share"`
	Sticky      bool    `json:"sticky,omitempty" help:"keep each user at one version"`
	MinAnswers  int     `json:"min_answers,omitempty" help:"answers of a version before it is judged; by default 20"`
	MaxFailures float64 `json:"max_failures,omitempty" help:"how much larger a version's share of failures and missed deadlines may be; by default 0.1"`
	MaxLoss     float64 `json:"max_loss,omitempty" help:"how much larger a version's mean loss may be; by default 0.1"`

	// Learning.
	Loss     string  `json:"loss,omitempty" help:"how the error of an answer is measured: zero_one, absolute or squared; by default zero_one, and absolute for numbers with fractions"`
	Scale    float64 `json:"scale,omitempty" help:"the error that counts as a loss of 1, for absolute and squared; 0 is 1"`
	Scope    string  `json:"scope,omitempty" help:"whose state is kept: app, user (the default), context or user_context"`
	Epsilon  float64 `json:"epsilon,omitempty" help:"share of the queries in which epsilon_greedy tries another model; by default 0.1"`
	Gamma    float64 `json:"gamma,omitempty" help:"share of the queries that exp3 spreads evenly; by default 0.1"`
	Eta      float64 `json:"eta,omitempty" help:"learning rate; 0 is the default"`
	Mixing   float64 `json:"mixing,omitempty" help:"share of the weights that is spread evenly at each step, to follow changes; 0 is the default"`
	Discount float64 `json:"discount,omitempty" help:"how much of the past is kept at each step; 1 keeps all, 0 is the default"`
	Alpha    float64 `json:"alpha,omitempty" help:"weight of the uncertainty for ucb1 and linucb; 0 is the default"`
	Features int     `json:"features,omitempty" help:"numbers of the input that linucb uses; by default 16"`

	// When an answer is good enough.
	Agreement    float64 `json:"agreement,omitempty" help:"share of the asked models that must agree in a vote, or with within_micros, that ends the wait for the others; 0: the most votes win"`
	Confidence   float64 `json:"confidence,omitempty" help:"the confidence that is enough for first_acceptable and cascade; by default 0.8"`
	Qualifier    string  `json:"qualifier,omitempty" help:"the named value of outputs to judge by instead of their confidence"`
	WithinMicros int64   `json:"within_micros,omitempty" help:"when to decide with the answers that are there, in microseconds; of custom: how long to wait for the policy; of hedge: for the first replica"`

	// Fallback decides when a custom policy does not in time. It is of a kind that does
	// not learn.
	Fallback *PolicySpec `json:"fallback,omitempty" help:"the policy that decides when a custom one is late"`

	// RecordSeconds is how long the record of an answer waits for feedback.
	RecordSeconds int `json:"record_seconds,omitempty" help:"how long feedback on an answer is accepted; 0 is 900"`
}

// What a loss can be. A plain reward r is the loss 1 − r.
const (
	LossZeroOne  = "zero_one" // 0 where the label is met, else 1; the default but for numbers with fractions
	LossAbsolute = "absolute" // the difference, divided by the scale
	LossSquared  = "squared"  // its square, divided by the scale's
)

// Whose state a policy keeps.
const (
	ScopeApp         = "app"          // one for all
	ScopeUser        = "user"         // each user's; new users begin with the app's. The default
	ScopeContext     = "context"      // one for each context that queries name
	ScopeUserContext = "user_context" // one for each user in each context
)

// StateExpiry is how long the state of an inactive user is kept.
const StateExpiry = 30 * 24 * time.Hour

const (
	defaultRecord = 15 * time.Minute
	maxRecord     = 7 * 24 * time.Hour
)

// KindName is the kind, also of the zero value.
func (p *PolicySpec) KindName() string {
	if p.Kind == "" {
		return PolicySingle
	}
	return p.Kind
}

// Learns says whether the policy has a state that feedback changes.
func (p *PolicySpec) Learns() bool { return policyKinds[p.KindName()].learns }

// Wants says whether the policy asks a model for every query, if the model is there.
func (p *PolicySpec) Wants(model string) bool {
	if !policyKinds[p.KindName()].all || p.Most > 0 {
		return false
	}
	return len(p.Models) == 0 || slices.ContainsFunc(p.Models, func(name string) bool {
		named, _, _ := strings.Cut(name, ":")
		return named == model
	})
}

// PerUser says that each user has their own state.
func (p *PolicySpec) PerUser() bool {
	scope := p.scope()
	return scope == ScopeUser || scope == ScopeUserContext
}

// PerContext says that each context has its own state.
func (p *PolicySpec) PerContext() bool {
	scope := p.scope()
	return scope == ScopeContext || scope == ScopeUserContext
}

// scope is whose state is kept. Versions are judged for all.
func (p *PolicySpec) scope() string {
	if p.Kind == PolicyVersions {
		return ScopeApp
	}
	return cmp.Or(p.Scope, ScopeUser)
}

// Within is when to decide with what is there, or 0.
func (p *PolicySpec) Within() time.Duration { return time.Duration(p.WithinMicros) * time.Microsecond }

// Ramp is how long the canary takes to its share.
func (p *PolicySpec) Ramp() time.Duration { return time.Duration(p.RampSeconds) * time.Second }

// Record is how long the record of an answer waits for feedback.
func (p *PolicySpec) Record() time.Duration {
	if p.RecordSeconds == 0 {
		return defaultRecord
	}
	return time.Duration(p.RecordSeconds) * time.Second
}

// ParsePolicy reads a policy from a JSON object, strictly: names that it does not know
// and values of other types are errors. It does not check what App.Check checks.
func ParsePolicy(text []byte) (PolicySpec, error) {
	var p PolicySpec
	if err := schema.ReadJSON(text, &p); err != nil {
		return PolicySpec{}, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// String is the policy as it stands in a configuration file, on one line.
func (p *PolicySpec) String() string {
	shown := *p
	shown.Kind = p.KindName()
	var parts []string
	for option, v := range shown.options() {
		parts = append(parts, option+" = "+inline(v))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func inline(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return quoteTOML(x)
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = quoteTOML(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case map[string]float64:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, fmt.Sprintf("%s = %v", quoteTOML(name), x[name]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	default:
		return fmt.Sprint(x)
	}
}

// quoteTOML is a basic string of TOML, which has the escapes of JSON.
func quoteTOML(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always marshals
	}
	return string(b)
}
