// Package selection holds the policies that decide which models to ask and which
// answer to give.
package selection

import (
	"fmt"
	"time"

	"topsail/serving"
)

// Selector is the selection of one app: a policy with its state.
type Selector interface {
	// Select decides which of the candidates to ask, for a query that had
	// budget when it was received. Candidates are the serving versions of the linked models, in the order
	// of linking; the slice is only lent.
	Select(q *serving.Query, candidates []serving.ModelID, budget time.Duration) Decision
}

// Decision is the selection for one query.
type Decision interface {
	// Models are the versions to ask, the most important first. The slice is lent.
	Models() []serving.ModelID
	// Combine makes one answer of what is there, in the order of Models. certain
	// says that the answer cannot change any more; at the deadline the verdict is
	// taken whether it is certain or not.
	Combine(answers []Answer) (v Verdict, certain bool)
}

// Answer is what one model has said so far: an output, a failure, or nothing yet.
type Answer struct {
	Output  *serving.Output
	Failure *serving.Failure
}

// Verdict is the answer to a query: an output, or why there is none. With neither,
// the models were too slow.
type Verdict struct {
	Output  *serving.Output
	Model   serving.ModelID // whose output it is, when it is one model's
	Failure *serving.Failure
}

// New makes the selector that spec names.
func New(spec serving.PolicySpec) (Selector, error) {
	switch spec.Kind {
	case "", "single":
		return Single{}, nil
	}
	return nil, fmt.Errorf("selection policy %q is unknown: use \"single\"", spec.Kind)
}
