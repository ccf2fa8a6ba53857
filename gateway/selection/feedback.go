package selection

import "github.com/topsail-serving/topsail/serving"

// Feedback is what became known of the answer to one query.
type Feedback struct {
	QueryID  int64 // 0: not known
	User     string
	Input    serving.Input
	Label    *serving.Output // what would have been right; nil for a plain reward
	Loss     float64         // of the answer, 0 to 1
	Outcomes []Outcome       // of the models that were asked
}

// Outcome is how one model did.
type Outcome struct {
	serving.ModelID
	Generation  string          // of the definition that said so
	Probability float64         // with which it was asked
	Output      *serving.Output // nil: none came
	Loss        float64         // 0 to 1, when Judged
	Judged      bool            // its loss is known
}

// Definition is what said so.
func (o *Outcome) Definition() serving.Definition {
	return serving.Definition{ModelID: o.ModelID, Generation: o.Generation}
}
