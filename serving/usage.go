package serving

import (
	"strings"
	"time"
	"unicode/utf8"
)

// UsageKey names what usage is counted of: an app, or a model version where App is
// empty; or one stage of either.
type UsageKey struct {
	App string
	ModelID
	Stage string // empty: the whole
}

// Object is the app or version that the key is about.
func (k UsageKey) Object() UsageKey {
	k.Stage = ""
	return k
}

// String is the key as a text that no other key has: the names of apps, models,
// versions and stages have neither slashes nor colons.
func (k UsageKey) String() string {
	text := "version/" + k.ModelID.String()
	if k.App != "" {
		text = "app/" + k.App
	}
	if k.Stage != "" {
		text += "/" + k.Stage
	}
	return text
}

// Usage is what came of the questions to a model version, the queries to an app, or
// the inputs of a stage.
type Usage struct {
	Key     UsageKey
	Since   time.Time     // when it was registered; zero: not known
	Answers uint64        // outputs that it gave; of an app all answers, its defaults among them
	Cached  uint64        // outputs that were taken from the cache, or from an equal question in flight; of an app, answers made of such alone
	Failed  uint64        // errors of the model or its container; of an app, defaults
	Missed  uint64        // questions that ended otherwise without an output: refused, late, taken back, dropped by a stage, or without a replica
	Micros  uint64        // microseconds that Answers took, all together, each from asking to the answer
	Least   time.Duration // that one of Answers took, above 0; 0: there was none
	Most    time.Duration // the same
	Last    *UsageFailure // the last of Failed; nil: there was none
}

// UsageFailure is the last failure that Usage knows.
type UsageFailure struct {
	At      time.Time `json:"at"`
	Cause   string    `json:"cause"`             // one of Cause
	Message string    `json:"message,omitempty"` // for people, of MaxUsageMessage bytes at the most
}

// MaxUsageMessage bounds what is kept of a failure's message, in bytes.
const MaxUsageMessage = 500

// MaxUsageStages bounds the stages of one app or version that usage is kept of.
const MaxUsageStages = 2 * MaxStages

// NewUsageFailure is a failure at a time.
func NewUsageFailure(f *Failure, at time.Time) *UsageFailure {
	message := strings.ToValidUTF8(f.Explain(), "\ufffd")
	if len(message) > MaxUsageMessage {
		message = message[:MaxUsageMessage-len("…")]
		for !utf8.ValidString(message) { // cut within a character
			message = message[:len(message)-1]
		}
		message += "…"
	}
	return &UsageFailure{At: at.UTC().Truncate(time.Millisecond), Cause: f.Cause.String(), Message: message}
}

// Add adds what came since to what came before. Of two failures the later is the last.
func (u *Usage) Add(more Usage) {
	if u.Least == 0 || more.Least > 0 && more.Least < u.Least {
		u.Least = more.Least
	}
	u.Most = max(u.Most, more.Most)
	u.Answers += more.Answers
	u.Cached += more.Cached
	u.Failed += more.Failed
	u.Missed += more.Missed
	u.Micros += more.Micros
	if more.Last != nil && (u.Last == nil || !more.Last.At.Before(u.Last.At)) {
		u.Last = more.Last
	}
}

// Empty says that nothing was counted.
func (u *Usage) Empty() bool {
	return u.Answers|u.Cached|u.Failed|u.Missed|u.Micros == 0 && u.Least|u.Most == 0 && u.Last == nil
}

// UsageReport is what one process counted since its report before. A store takes each
// report once: Writer is a name that no other process has or had, and Number grows from
// report to report. A process waits for one to be taken before it sends the next, so
// that one whose number is not above all that the store knows has been taken, or given up.
type UsageReport struct {
	Writer   string
	Number   uint64
	Revision uint64  // of the catalog that was in use: what was registered since is another
	Counted  []Usage // at most MaxUsageReport; Since is not looked at
}

// MaxUsageReport bounds the counts of one report.
const MaxUsageReport = 500

const (
	// UsageDoubt is how long a report may be sent again of which it is not known whether
	// it arrived. Stores know their writers for UsageWriters after the last report, so
	// that they would still know that one.
	UsageDoubt   = 24 * time.Hour
	UsageWriters = 7 * 24 * time.Hour
)

// Inferences are what the queries of an app came to at one gateway.
type Inferences struct {
	Succeeded uint64        // got a prediction
	Defaults  uint64        // got a default
	Cached    uint64        // of the requests to models, those answered from the cache or by an equal one
	Asked     uint64        // of these, those that went to a replica
	Took      time.Duration // all answers together
}
