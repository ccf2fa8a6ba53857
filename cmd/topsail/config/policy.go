package config

import "topsail/serving"

// policyTable is [app.policy]: the selection policy and its options.
type policyTable struct {
	Kind string `toml:"kind" default:"single" help:"the selection policy: single, versions, shadow, epsilon_greedy, ucb1, thompson, exp3, linucb, exp4, vote, mean, median, best, logistic, stacking, guaranteed, first_acceptable, hedge, cascade or custom"`

	Model   string             `toml:"model" help:"who answers; of custom, the model that decides; by default the first that is linked"`
	Models  []string           `toml:"models" help:"who may be asked, in the order that matters to the kind; of shadow, the shadows; by default all that are linked"`
	Most    int                `toml:"most" help:"how many models are asked for one query at the most; 0 is all"`
	Costs   map[string]float64 `toml:"costs" help:"of asking a model, relative to the others; measured by default"`
	ByCost  bool               `toml:"by_cost" help:"rank models by their worth for the cost"`
	Weights map[string]float64 `toml:"weights" help:"of versions, by version, shares of the queries; of vote and mean, by model, of the answers"`

	Canary      string  `toml:"canary" help:"the version that versions tries"`
	Share       float64 `toml:"share" help:"of the queries that go to the canary or to shadows, or that hedge may ask twice; 0 is the default"`
	RampSeconds int     `toml:"ramp_seconds" help:"how long the canary takes to its share"`
	Sticky      bool    `toml:"sticky" help:"a user stays with a version"`
	MinAnswers  int     `toml:"min_answers" help:"answers of a version before it is judged; 0 is the default"`
	MaxFailures float64 `toml:"max_failures" help:"by how much a version's share of failures and missed deadlines may be larger; 0 is the default"`
	MaxLoss     float64 `toml:"max_loss" help:"by how much a version's mean loss may be larger; 0 is the default"`

	Loss     string  `toml:"loss" help:"how wrong an answer is: zero_one, absolute or squared; by default zero_one"`
	Scale    float64 `toml:"scale" help:"the error that counts as loss 1, of absolute and squared; 0 is 1"`
	Scope    string  `toml:"scope" help:"whose state is kept: app, user, context or user_context; by default user"`
	Epsilon  float64 `toml:"epsilon" help:"share of queries with which epsilon_greedy tries another model; 0 is the default"`
	Gamma    float64 `toml:"gamma" help:"share of queries that exp3 spreads evenly; 0 is the default"`
	Eta      float64 `toml:"eta" help:"learning rate; 0 is the default"`
	Mixing   float64 `toml:"mixing" help:"how much of the weights is shared out at each step, to follow change; 0 is the default"`
	Discount float64 `toml:"discount" help:"what is left of the past at each step; 1 forgets nothing, 0 is the default"`
	Alpha    float64 `toml:"alpha" help:"how much doubt counts with ucb1 and linucb; 0 is the default"`
	Features int     `toml:"features" help:"how many numbers of the input linucb looks at; 0 is the default"`

	Agreement    float64 `toml:"agreement" help:"share of the models asked that must agree in a vote; 0 is that most votes win"`
	Confidence   float64 `toml:"confidence" help:"what is enough for first_acceptable and cascade; 0 is the default"`
	Qualifier    string  `toml:"qualifier" help:"named value of outputs to judge by instead of their confidence"`
	WithinMicros int64   `toml:"within_micros" help:"when to decide with what is there, in microseconds; of custom, how long to wait for the policy; of hedge, for the first replica"`

	Fallback *serving.PolicySpec `toml:"fallback" help:"a policy like this one that decides when a custom one does not in time"`

	RecordSeconds int `toml:"record_seconds" help:"how long the record of an answer waits for feedback; 0 is 900"`
}

// policyLinks checks that what the policy of the app at path names is in the file,
// which has these versions, and these current ones of its models.
func (l *loader) policyLinks(path string, a *serving.App, current map[string]*serving.Version, versions map[serving.ModelID]bool) {
	l.checked(path, "", a.CheckLinks())
	l.checked(path, "", a.CheckVersions(func(id serving.ModelID) bool {
		return current[id.Model] == nil || versions[id] // a link to no model is reported already
	}))
	// No app links the model that decides, and so nothing else looks at it.
	path += ".policy.model"
	if a.Policy.Kind != serving.PolicyCustom || a.Policy.Model == "" || l.reported(path) {
		return
	}
	switch v := current[a.Policy.Model]; {
	case v == nil:
		l.wrong(path, "app %q: policy: model %q is not in this file%s", a.Name, a.Policy.Model, didYouMean(a.Policy.Model, keys(current)))
	case v.InputType != serving.Strings && v.InputType != 0:
		l.wrong(path, "app %q: policy: model %q decides and must take strings, and it takes %v", a.Name, a.Policy.Model, v.InputType)
	}
}
