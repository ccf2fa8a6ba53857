package serving

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// PolicySpec names the selection policy of an app, with its options. The zero value
// is "single". Which options a kind has stands in policyKinds, and App.Check refuses the
// others; zero stands for the default, which docs/selection.md gives. Models are named
// as they are linked, and "model:version" pins the version of them that is asked.
type PolicySpec struct {
	Kind string `json:"kind,omitempty" toml:"kind"` // a Policy constant

	// Whom to ask.
	Model   string             `json:"model,omitempty" toml:"model"`     // who answers; of custom, who decides
	Models  []string           `json:"models,omitempty" toml:"models"`   // who may be asked, in the order that matters to the kind; of shadow, the shadows. All that are linked by default
	Most    int                `json:"most,omitempty" toml:"most"`       // how many are asked for one query at the most; 0: all
	Costs   map[string]float64 `json:"costs,omitempty" toml:"costs"`     // of asking a model, relative to the others; measured by default
	ByCost  bool               `json:"by_cost,omitempty" toml:"by_cost"` // rank by worth for the cost
	Weights map[string]float64 `json:"weights,omitempty" toml:"weights"` // versions: by version, of the queries; vote and mean: by model, of the answers; 0 is not asked

	// versions, shadow and hedge. A version is judged against the one that has most of
	// the queries, and loses its share when it is worse.
	Canary      string  `json:"canary,omitempty" toml:"canary"`             // the version that is tried
	Share       float64 `json:"share,omitempty" toml:"share"`               // of the queries: that go to the canary, or to the shadows; of hedge, that may be asked twice
	RampSeconds int     `json:"ramp_seconds,omitempty" toml:"ramp_seconds"` // until the canary has its share
	Sticky      bool    `json:"sticky,omitempty" toml:"sticky"`             // a user stays with a version
	MinAnswers  int     `json:"min_answers,omitempty" toml:"min_answers"`   // of a version, before it is judged
	MaxFailures float64 `json:"max_failures,omitempty" toml:"max_failures"` // by how much its share of failures and missed deadlines may be larger
	MaxLoss     float64 `json:"max_loss,omitempty" toml:"max_loss"`         // by how much its mean loss may be larger

	// Learning.
	Loss     string  `json:"loss,omitempty" toml:"loss"`         // a Loss constant
	Scale    float64 `json:"scale,omitempty" toml:"scale"`       // the error that counts as loss 1, of absolute and squared
	Scope    string  `json:"scope,omitempty" toml:"scope"`       // a Scope constant
	Epsilon  float64 `json:"epsilon,omitempty" toml:"epsilon"`   // epsilon_greedy: the share of queries that try another model
	Gamma    float64 `json:"gamma,omitempty" toml:"gamma"`       // exp3: the share of queries that is spread evenly
	Eta      float64 `json:"eta,omitempty" toml:"eta"`           // learning rate
	Mixing   float64 `json:"mixing,omitempty" toml:"mixing"`     // how much of the weights is shared out at each step, to follow change
	Discount float64 `json:"discount,omitempty" toml:"discount"` // what is left of the past at each step; 1 forgets nothing
	Alpha    float64 `json:"alpha,omitempty" toml:"alpha"`       // ucb1 and linucb: how much doubt counts
	Features int     `json:"features,omitempty" toml:"features"` // linucb: how many numbers of the input it looks at

	// When an answer is good enough.
	Agreement    float64 `json:"agreement,omitempty" toml:"agreement"`         // vote: the share of those asked that must agree; 0: most votes win
	Confidence   float64 `json:"confidence,omitempty" toml:"confidence"`       // first_acceptable and cascade: what is enough, 0 to 1; or of the qualifier
	Qualifier    string  `json:"qualifier,omitempty" toml:"qualifier"`         // best, first_acceptable and cascade: the named value of outputs that is judged instead of their confidence
	WithinMicros int64   `json:"within_micros,omitempty" toml:"within_micros"` // when to decide with what is there; of custom, how long to wait for the policy; of hedge, how long for the first replica

	// Fallback decides when a custom policy does not in time. It is of a kind that does
	// not learn.
	Fallback *PolicySpec `json:"fallback,omitempty" toml:"fallback"`

	// RecordSeconds is how long the record of an answer waits for feedback.
	RecordSeconds int `json:"record_seconds,omitempty" toml:"record_seconds"`
}

// What a loss can be. A plain reward r is the loss 1 − r.
const (
	LossZeroOne  = "zero_one" // 0 where the label is met, else 1; the default
	LossAbsolute = "absolute" // the difference, divided by the scale
	LossSquared  = "squared"  // its square, divided by the scale's
)

// Whose state a policy keeps.
const (
	ScopeApp         = "app"          // one for all
	ScopeUser        = "user"         // each user's; who is not known yet begins with the app's. The default
	ScopeContext     = "context"      // one for each context that queries name
	ScopeUserContext = "user_context" // one for each user in each context
)

// StateExpiry is how long the state of a user who is not seen is kept.
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
