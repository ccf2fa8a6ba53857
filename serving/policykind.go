package serving

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/topsail-serving/topsail/internal/schema"
)

// The kinds of policies. Their names are fixed: they stand in files and in states.
const (
	PolicySingle          = "single"
	PolicyVersions        = "versions"
	PolicyShadow          = "shadow"
	PolicyEpsilonGreedy   = "epsilon_greedy"
	PolicyUCB1            = "ucb1"
	PolicyThompson        = "thompson"
	PolicyExp3            = "exp3"
	PolicyLinUCB          = "linucb"
	PolicyExp4            = "exp4"
	PolicyVote            = "vote"
	PolicyMean            = "mean"
	PolicyMedian          = "median"
	PolicyBest            = "best"
	PolicyLogistic        = "logistic"
	PolicyStacking        = "stacking"
	PolicyGuaranteed      = "guaranteed"
	PolicyFirstAcceptable = "first_acceptable"
	PolicyHedge           = "hedge"
	PolicyCascade         = "cascade"
	PolicyPrefer          = "prefer"
	PolicyCustom          = "custom"
)

// policyKind is what is known of a kind before it is used.
type policyKind struct {
	options []string     // beside those of every kind
	numeric bool         // it takes numeric inputs only
	outputs []OutputType // that it takes; nil: any. The first is taken where the app names none
	learns  bool
	all     bool // it asks all models for each query
}

// everyPolicy are the options that every kind has.
var everyPolicy = []string{"kind", "loss", "scale", "costs", "record_seconds"}

var policyKinds = map[string]policyKind{
	PolicySingle:          {options: []string{"model"}},
	PolicyVersions:        {options: []string{"weights", "canary", "share", "ramp_seconds", "sticky", "min_answers", "max_failures", "max_loss"}, learns: true},
	PolicyShadow:          {options: []string{"model", "models", "share"}},
	PolicyEpsilonGreedy:   {options: []string{"models", "scope", "epsilon", "discount", "by_cost"}, learns: true},
	PolicyUCB1:            {options: []string{"models", "scope", "alpha", "discount", "by_cost"}, learns: true},
	PolicyThompson:        {options: []string{"models", "scope", "discount", "by_cost"}, learns: true},
	PolicyExp3:            {options: []string{"models", "scope", "gamma", "eta", "mixing"}, learns: true},
	PolicyLinUCB:          {options: []string{"models", "scope", "alpha", "features", "discount", "by_cost"}, numeric: true, learns: true},
	PolicyExp4:            {options: []string{"models", "most", "scope", "eta", "mixing", "by_cost"}, outputs: []OutputType{OutputLabel, OutputNumber, OutputVector}, learns: true, all: true},
	PolicyVote:            {options: []string{"models", "most", "weights", "agreement", "within_micros", "by_cost"}, all: true},
	PolicyMean:            {options: []string{"models", "most", "weights", "by_cost"}, outputs: []OutputType{OutputNumber, OutputVector}, all: true},
	PolicyMedian:          {options: []string{"models", "most", "by_cost"}, outputs: []OutputType{OutputNumber, OutputVector}, all: true},
	PolicyBest:            {options: []string{"models", "most", "qualifier", "within_micros", "by_cost"}, all: true},
	PolicyLogistic:        {options: []string{"models", "most", "scope", "eta", "by_cost"}, outputs: []OutputType{OutputNumber}, learns: true, all: true},
	PolicyStacking:        {options: []string{"models", "most", "scope", "eta", "by_cost"}, outputs: []OutputType{OutputNumber, OutputVector}, learns: true, all: true},
	PolicyGuaranteed:      {options: []string{"models", "most", "within_micros"}, all: true},
	PolicyFirstAcceptable: {options: []string{"models", "most", "confidence", "qualifier", "within_micros"}, all: true},
	PolicyHedge:           {options: []string{"model", "share", "within_micros"}},
	PolicyCascade:         {options: []string{"models", "most", "confidence", "qualifier"}},
	PolicyPrefer:          {options: []string{"order"}},
	PolicyCustom:          {options: []string{"model", "models", "most", "scope", "within_micros", "fallback"}, learns: true},
}

// PolicyKinds lists the names of all kinds, sorted.
func PolicyKinds() []string { return slices.Sorted(maps.Keys(policyKinds)) }

// fallbackKinds are those that can stand in for a custom policy, sorted.
func fallbackKinds() []string {
	return slices.DeleteFunc(PolicyKinds(), func(name string) bool { return policyKinds[name].learns })
}

// AcceptsInput says whether policies of a kind take inputs of a type.
func AcceptsInput(kind string, t InputType) bool {
	return !policyKinds[kind].numeric || t.Numeric()
}

// OutputOf is the type that the policy takes the outputs of its app's models for.
func (p *PolicySpec) OutputOf(declared OutputType) OutputType {
	if takes := policyKinds[p.KindName()].outputs; declared == OutputAny && len(takes) > 0 {
		return takes[0]
	}
	return declared
}

// optionNames are the names of all options, in the order of PolicySpec.
func optionNames() []string {
	return schema.Keys(schema.JSON.Fields(reflect.TypeFor[PolicySpec]()))
}

// options yields what is given: the options that are not zero, by their names.
func (p *PolicySpec) options() iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		spec := reflect.ValueOf(p).Elem()
		for _, f := range schema.JSON.Fields(spec.Type()) {
			if v := spec.FieldByIndex(f.Index); !empty(v) && !yield(f.Key, v) {
				return
			}
		}
	}
}

// empty says whether JSON leaves a value out, as reflect's IsZero does not of -0 and
// of lists without elements.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return v.Float() == 0
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}
