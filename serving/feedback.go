package serving

import (
	"time"
)

// Feedback says how good an answer was: by the label that would have been right, or by a plain
// reward. It names the query by its id, or else by its input.
type Feedback struct {
	App      string
	ID       string // its sender's, by which it counts once; empty: none
	QueryID  int64  // 0: the newest answer to this user's input is meant
	User     string // may be empty
	Context  string // may be empty
	Input    Input  // of Type 0 when it is not given
	Label    *Output
	Reward   *float64      // 0 to 1; nil when there is a label
	Received time.Time     // zero: when it is handed over
	Timeout  time.Duration // how long the caller waits; 0: a time that suits
}

// Learned says what became of feedback. It has been stored when the caller gets it.
type Learned struct {
	QueryID   int64          // of the answer that it was joined with; 0: there was none
	Joined    FeedbackSource // with what it was joined
	Duplicate bool           // the answer, or this ID, had its feedback already: nothing was learned
	Trained   []StateScope   // the states that learned
	Loss      float64        // of the answer
	Models    []LearnedModel // how each model that was asked did
	Forwarded int            // to how many containers the feedback was sent on
}

// FeedbackSource is where the predictions came from that feedback was joined with.
type FeedbackSource string

const (
	FromRecord FeedbackSource = "record" // what was said then
	FromCache  FeedbackSource = "cache"  // predictions for the same input
	FromModels FeedbackSource = "models" // the models were called
)

// StateScope names a state that learned, within an app.
type StateScope struct {
	User    string `json:"user,omitempty"`
	Context string `json:"context,omitempty"`
}

// LearnedModel is how one model did by the feedback.
type LearnedModel struct {
	ModelID
	Loss   float64
	Judged bool // its loss is known
}

// Learning is what a policy has learned for a user in a context of an app, for people.
type Learning struct {
	App     string          `json:"app"`
	Policy  string          `json:"policy"`
	User    string          `json:"uid,omitempty"`
	Context string          `json:"context,omitempty"`
	Steps   float64         `json:"steps"`          // pieces of feedback
	Loss    float64         `json:"loss"`           // mean loss of the answers
	Regret  float64         `json:"regret"`         // what choosing has cost against the best single model, in units of loss
	Note    string          `json:"note,omitempty"` // the policy's word, such as why a canary was taken back
	Models  []ModelLearning `json:"models"`
}

// ModelLearning is what is known of one model.
type ModelLearning struct {
	ModelID
	Share  float64 `json:"share"`  // of the queries or of the answer, as it would be now
	Worth  float64 `json:"worth"`  // higher is better, in the policy's own unit
	Judged float64 `json:"judged"` // outputs that feedback has judged
	Loss   float64 `json:"loss"`   // their mean loss
}
