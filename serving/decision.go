package serving

import "time"

// Decision is what the scheduler decided about one model version, and why.
type Decision struct {
	ModelID
	At      time.Time `json:"at"`
	From    int       `json:"from"`    // the count before
	To      int       `json:"to"`      // the count asked for
	Rule    string    `json:"rule"`    // the rule that decided: "capacity", "panic", "idle", "wake", "pin", …
	Reason  string    `json:"reason"`  // a sentence with the figures
	Outcome string    `json:"outcome"` // "applied", "dry_run", "blocked", "conflict", "failed"
	Error   string    `json:"error,omitempty"`
	Leader  string    `json:"leader"` // the scheduler that decided
	Fence   uint64    `json:"fence"`  // its token
}
