// Package selection is what policies are made of: they decide which models to ask for
// a query, when what has come is enough, which answer to make of it, and what to learn
// from feedback. A policy is pure: what it has learned is in a State that is passed in,
// what it draws comes from the query, and time is what it is told.
//
// The policies themselves are in the packages below this one, and package kinds makes
// them by name.
package selection

import (
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Policy decides for the queries of one app. All methods may be called concurrently.
type Policy interface {
	// Select ranks the versions to ask into plan, which is empty but may have memory to
	// reuse. Candidates are sorted by their ids and only lent. s is nil for a policy
	// that is no Learner; else every candidate has an entry in it. The gateway may
	// leave out asks from the end, never the first, before it asks.
	Select(s *State, q *Query, candidates []Candidate, plan *Plan)
	// Combine makes one answer of what has come, in the order of plan.Asks. It is
	// called when something has come, when a Decision wanted it again, and a
	// last time at the deadline, with at.Final, when whatever it says is taken.
	Combine(s *State, plan *Plan, answers []Answer, at Moment) Decision
}

// Learner is a policy with a State, which it never changes in place.
type Learner interface {
	Policy
	// New is the state before any feedback. The order of models does not matter.
	New(models []serving.ModelID) *State
	// Train learns from one piece of feedback; nil says that it cannot now, and that the
	// feedback has to return.
	Train(s *State, f *Feedback) *State
	// AddModel takes in a model that joins: it begins in the middle of the others.
	AddModel(s *State, id serving.ModelID) *State
	// UpdateVersion replaces the version of a model: what was learned stays, and is
	// trusted less.
	UpdateVersion(s *State, id serving.ModelID) *State
	// Explain says in numbers what the policy would do now, for people: for each
	// entry of s.Models, in their order, its worth and its share of the queries or of
	// the answer (0 to 1).
	Explain(s *State) []Standing
}

// Observer is a policy that also learns from how asking went, without any feedback.
type Observer interface {
	// Observe takes in what has happened since the last time, at all gateways
	// together or at one of them.
	Observe(s *State, tallies []Tally, now time.Time) *State
}

// Tally is how asking one model version went.
type Tally struct {
	serving.ModelID
	Answers  float64 // outputs that came in time
	Failures float64 // errors of the model or its container
	Missed   float64 // no answer by the deadline
}

// Query is what a policy may look at.
type Query struct {
	User    string // may be empty
	Context string // may be empty
	Input   serving.Input
	Budget  time.Duration // from now until the answer must leave
	Now     time.Time
	Rand    *rand.Rand // the policy's only source of chance
}

// Candidate is a model version that can be asked.
type Candidate struct {
	serving.ModelID
	Ready  bool          // it has a replica
	Cost   float64       // of asking it, against the others: declared, else measured; above 0
	Median time.Duration // of its recent answers; 0: not known yet
	P95    time.Duration
}

// Plan is the versions to ask for one query, the most important first.
type Plan struct {
	Asks    []Ask
	Now     int       // how many of Asks are asked at once; 0: all. The rest waits until a Decision opens it
	Ranked  bool      // the first of Asks that answers is the answer, and the client is told why none before it did
	Alone   bool      // what one model says is the whole answer: once its first part is out, Combine is not called again
	Mode    int       // the policy's own, between Select and Combine
	Scratch []float64 // the policy's own, between Select and Combine
	Own     any       // as Scratch
}

// Ask is one question.
type Ask struct {
	Candidate   int // its place among the candidates
	ID          serving.ModelID
	Probability float64       // with which the policy asks it, if those before it fail; 1 where there was no chance, 0: not known
	Weight      float64       // of its output in the answer, to explain it
	Shadow      bool          // its output is compared and never answered with; the query does not wait for it
	Absent      bool          // it has no replica, and the next has: it is not asked, and counts as failed
	HedgeAfter  time.Duration // when a second replica is asked if the first is silent; 0: the gateway decides
}

// Reset empties the plan and keeps its memory.
func (p *Plan) Reset() {
	*p = Plan{Asks: p.Asks[:0], Scratch: p.Scratch[:0]}
}

// Add ranks a candidate next.
func (p *Plan) Add(at int, c *Candidate, probability, weight float64) {
	p.Asks = append(p.Asks, Ask{Candidate: at, ID: c.ModelID, Probability: probability, Weight: weight})
}

// Answer is what one model has said so far: an output, a failure, or nothing yet.
type Answer struct {
	Output  *serving.Output
	Failure *serving.Failure
}

// Come says whether there is anything.
func (a *Answer) Come() bool { return a.Output != nil || a.Failure != nil }

// Moment is when Combine is called.
type Moment struct {
	Elapsed time.Duration // since Select
	Budget  time.Duration // from Select to the answer
	Final   bool          // nothing comes any more
}

// Decision is what Combine says.
type Decision struct {
	Verdict
	Done  bool          // the verdict is the answer; nothing that may still come would change it
	Open  int           // how many of plan.Asks to ask now; it never shrinks
	Again time.Duration // when, since Select, to call again though nothing comes; 0: not before the deadline
}

// Verdict is the answer to a query: an output, or why there is none. With neither,
// the models were too slow.
type Verdict struct {
	Output     *serving.Output
	Model      serving.ModelID // whose output it is, when it is one model's
	Failure    *serving.Failure
	Confidence float64 // in the answer, 0 to 1: agreement or a model's own; 0: not known
	Ended      Ending  // why the policy decided when it did
}

// Ending is why a decision was made, in words for explanations and metrics.
type Ending string

const (
	EndedAll        Ending = "all_answered" // every model that was asked has answered
	EndedCertain    Ending = "certain"      // what is missing could not change it
	EndedAcceptable Ending = "acceptable"   // an answer was good enough
	EndedTime       Ending = "time"         // the policy's own limit came
	EndedDeadline   Ending = "deadline"     // the query's deadline came
)

// Endings lists every ending, for metrics that want a series of each from the start.
func Endings() []Ending {
	return []Ending{EndedAll, EndedCertain, EndedAcceptable, EndedTime, EndedDeadline}
}

// Standing is how one model is doing with a policy.
type Standing struct {
	Worth float64 `json:"worth"` // higher is better, in the policy's own unit
	Share float64 `json:"share"` // of the queries or of the answer
}
