// Package conformance is the suite of tests that every selection policy passes. What
// concerns states runs for policies that are a selection.Learner.
package conformance

import (
	"testing"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// Case is a policy with what the suite must know of it.
type Case struct {
	// New makes the policy for an app that links these models.
	New func(links []string) selection.Policy
	// Output makes an output that the policy takes. Equal numbers make equal outputs.
	Output func(x float64) *serving.Output
	// Input is of each query. The zero value stands for three doubles.
	Input serving.Input
	// Single says that the app has one model: what is chosen from are its versions.
	Single bool
	// Ordered says that the order of the links matters.
	Ordered bool
	// Uncounted says that the policy cannot tell its probabilities: asks have 0.
	Uncounted bool
	// Declines says that the policy may give no output though some have come.
	Declines bool
	// Allocs is how many allocations Select and Combine may make together.
	Allocs float64
}

// Run runs the suite.
func Run(t *testing.T, c Case) {
	if c.Input.Type == 0 {
		c.Input = Doubles(0.5, -1, 2)
	}
	s := suite{c}
	run(t, map[string]func(*testing.T){
		"no candidate":         s.noCandidate,
		"one model":            s.oneModel,
		"a thousand models":    s.thousandModels,
		"plans":                s.plans,
		"readiness":            s.readiness,
		"order of links":       s.orderOfLinks,
		"same seed, same plan": s.sameSeed,
		"decisions":            s.decisions,
		"memory":               s.memory,
		"concurrency":          s.concurrency,
	})
	if _, learns := c.New(names(1)).(selection.Learner); !learns {
		return
	}
	run(t, map[string]func(*testing.T){
		"order of models": s.orderOfModels,
		"round trip":      s.roundTrip,
		"immutable":       s.immutable,
		"any feedback":    s.anyFeedback,
		"hostile losses":  s.hostileLosses,
		"hostile numbers": s.hostileNumbers,
		"strangers":       s.strangers,
		"older state":     s.olderState,
		"add a model":     s.addModel,
		"update":          s.updateVersion,
		"first model":     s.firstModel,
	})
}

func run(t *testing.T, tests map[string]func(*testing.T)) {
	for name, test := range tests {
		t.Run(name, test)
	}
}

type suite struct{ Case }
