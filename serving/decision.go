package serving

import "time"

// Decision is what the scheduler decided about one model version, and why.
type Decision struct {
	ModelID
	At      time.Time
	From    int    // the count before
	To      int    // the count asked for
	Rule    string // the rule that decided: "capacity", "panic", "idle", "wake", "pin", …
	Reason  string // a sentence with the figures
	Outcome string // "applied", "dry_run", "blocked", "conflict", "failed"
	Error   string // of an outcome other than applied
	Leader  string // the scheduler that decided
	Fence   uint64 // its token
}
