package serving

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
