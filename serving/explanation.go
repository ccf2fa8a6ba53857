package serving

import "time"

// Explanation says how an answer came about, where the client asks for it.
type Explanation struct {
	Policy     string
	Ended      string // why the policy decided when it did
	Confidence float64
	Elapsed    time.Duration // from receiving the query to the decision
	Budget     time.Duration // what there was
	Models     []ExplainedModel
}

// ExplainedModel is what one model had to do with an answer.
type ExplainedModel struct {
	ModelID
	Generation  string // of the definition that was asked; not for clients
	Asked       bool   // else it was in reserve, or left out
	Shed        bool   // left out because capacity or time was short
	Shadow      bool   // asked for comparison only
	Cached      bool   // from the cache or from an equal query in flight
	Output      []byte // JSON; nil: none came in time
	Failure     string // why none came
	Probability float64
	Weight      float64
	Confidence  *float64
	Took        time.Duration // until its answer came; 0: it did not
}
