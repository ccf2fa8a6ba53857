package serving

import (
	"context"
	"fmt"
	"time"
)

// Query is one input to one app. It owns its memory: nothing in it points into
// a request buffer.
type Query struct {
	App      string
	Input    Input
	Received time.Time     // the SLO counts from here; zero: from when it is asked
	Timeout  time.Duration // the client's own limit; 0: the app's SLO. It can only shorten.
	User     string        // whose selection state is used; may be empty
	Context  string        // which of the app's contexts; may be empty
	Version  string        // a version of the linked model; empty: the serving one
	Salt     string        // queries of different salts never share a cache entry
	NoCache  bool          // neither read from the cache nor join a query in flight
	Explain  bool          // say in the prediction how it came about
	Timing   *Timing       // to be filled in from Selected to Combined; nil: it is not wanted
	Affinity Affinity      // replicas of each model that it had better go to
	Priority int           // 0, the highest, to LowestPriority; it has that of its app if that is lower
	// Candidates are the models that may be asked, of a version or of any; nil: all that the app
	// links.
	Candidates []ModelID
	Again      bool // a default that may pass is not the answer: the same is retried
}

// Counts says whether a prediction is the answer, and not a default after which the query is
// retried.
func (q *Query) Counts(p *Prediction) bool { return !q.Again || !p.Default || !p.Cause.Passes() }

// Prediction answers a Query.
type Prediction struct {
	QueryID     int64   // below 2^53, unique across gateways and restarts
	Output      []byte  // JSON; shared and immutable
	Full        *Output // what Output is of: values as they came, by name, and what stands beside them; shared and immutable. Nil for a default
	Default     bool
	Cause       Cause  // why it is the default; OK when it is not
	Explanation string // why it is the default, in a sentence
	Model       ModelID
	Confidence  *float64     // nil: the output came without one
	Qualifiers  []Value      // named values beside the output; shared and immutable
	Cached      bool         // answered from the cache or by joining an equal query in flight
	Missing     []ModelID    // asked for the answer, and silent or failed
	Shed        []ModelID    // left out because capacity or time was short
	Ranked      bool         // the policy ranks the models: the client is told which one answered, and why none before it
	PassedOver  []PassedOver // the models that are ranked before the one that answered
	Failover    []ModelID    // current versions that lost their replicas, and the ones that served before were asked in their stead
	Explained   *Explanation // nil unless the query wants it
}

// PassedOver is a model that did not answer in time, and so a model that is ranked after it was to.
type PassedOver struct {
	ModelID
	Why Cause
}

// ShorterTimeout is the shorter of two timeouts, where 0 is none.
func ShorterTimeout(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// Priorities is how many there are: 0, the highest, to LowestPriority.
const (
	Priorities     = 4
	LowestPriority = Priorities - 1
)

// Class says how a query shares capacity that is short with others.
type Class struct {
	App      string  // "": not known
	Priority int     // what waits of a higher one goes first
	Weight   float64 // beside other apps of the same priority; 0 is 1
	MinShare float64 // the part of the capacity that the app gets even where higher priorities want all
}

func checkPriority(p int) error {
	if p < 0 || p > LowestPriority {
		return fmt.Errorf("priority must be between 0, the highest, and %d", LowestPriority)
	}
	return nil
}

// MaxOwners bounds the owners of an affinity.
const MaxOwners = 64

// Affinity is what queries have in common that had better go to the same replicas of a model, as
// far as that can be.
type Affinity struct {
	Key    string // empty: the query goes to any replica
	Owners int    // how many replicas the key has; 0: as many as its queries need
}

// Parts is an answer that comes in parts. One goroutine at a time uses it, and closes it.
type Parts interface {
	// Next is the next part, which is shared and immutable, or io.EOF at the end of the answer. Other
	// errors are those of a context that has ended.
	Next(ctx context.Context) (*Output, error)
	// Answer says, after io.EOF, how the answer ended: with the whole output, which is null where that
	// is too large to be collected, or with a default. A default after parts says why they were cut. Its
	// query id is known from the beginning.
	Answer() *Prediction
	// Close stops the answer, unless it has ended or equal queries wait for it.
	Close()
}
