package serving

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknownApp is returned for a query to an app that is not registered.
var ErrUnknownApp = errors.New("no such app")

// ErrNoCatalog is returned while it is not known yet which apps there are.
var ErrNoCatalog = errors.New("the catalog is not known yet")

// ErrUnavailable is returned when something that must be stored for good cannot be, because the
// store is unavailable. It is safe to send it again.
var ErrUnavailable = errors.New("the store is unavailable")

// Unwritable says why a store takes no writes, and what to do about it, in words for clients:
// without paths and secrets.
type Unwritable struct {
	Reason error
	Remedy string
}

func (e *Unwritable) Error() string { return e.Reason.Error() + ": " + e.Remedy }

func (e *Unwritable) Unwrap() error { return e.Reason }

// ErrUnjudged is returned for feedback that can only be judged by what models say, while none
// answers. It is safe to send it again.
var ErrUnjudged = errors.New("no model answers, and there is no record: the feedback cannot be evaluated")

// ErrFenced says that a scheduler with a higher fencing token has written: a caller that
// gets it leads no longer.
var ErrFenced = errors.New("a newer leader has written")

// QueryError is a query that asks for something that cannot be: a version that
// does not exist, an input of the wrong type or length. Its text is for the client.
type QueryError struct {
	Cause          string
	UnknownVersion bool // it is this
}

func (e *QueryError) Error() string { return e.Cause }

// Cause says why a model gave no output. The set is closed and small, so that
// it can label metrics; the sentence for people travels beside it in a Failure.
type Cause uint8

const (
	OK             Cause = iota
	MissedSLO            // the deadline came before the output
	NoReplica            // no ready replica serves the model
	RefusedFull          // a replica's queue is full
	RefusedLate          // a replica cannot make the deadline
	ModelError           // the model raised an error for this input
	ContainerError       // the container died, lied or could not be reached
	Draining             // the replica is stopping
	Dropped              // a stage of the model's pipeline dropped the input
	BadInput             // the model does not take this input

	LastCause = BadInput
)

var causeNames = [LastCause + 1]string{"ok", "missed_slo", "no_replica", "refused_full", "refused_late", "model_error", "container_error", "draining", "dropped", "bad_input"}

// Causes lists every cause, for metrics that want a series of each from the start.
func Causes() []Cause {
	all := make([]Cause, len(causeNames))
	for i := range all {
		all[i] = Cause(i)
	}
	return all
}

// Passes says whether an output may be had later.
func (c Cause) Passes() bool {
	switch c {
	case MissedSLO, NoReplica, RefusedFull, RefusedLate, ContainerError, Draining:
		return true
	}
	return false
}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// FromModel says whether it is the model's own answer to the input, which another replica would repeat.
func (c Cause) FromModel() bool { return c == ModelError || c == Dropped || c == BadInput }

// Failure is the error of one input at one model version.
type Failure struct {
	Cause   Cause
	Message string // a sentence for people; may be empty. What is behind a line break in that of RefusedLate is for Detail
}

func (f *Failure) Error() string {
	if f.Message == "" {
		return f.Cause.String()
	}
	return f.Message
}

// Explain is the sentence that stands in default_explanation. The sentences for
// a missed SLO and a missing replica are Clipper's own, which clients compare, and refusals for one reason have one.
func (f *Failure) Explain() string {
	if f.Cause == RefusedLate {
		reason, _, _ := strings.Cut(f.Error(), "\n")
		return "Refused: " + reason
	}
	return f.Detail()
}

// Detail is Explain with the figures of a refusal.
func (f *Failure) Detail() string {
	switch f.Cause {
	case MissedSLO:
		return "Failed to retrieve a prediction response within the specified latency SLO"
	case NoReplica:
		return "No connected models found for query"
	case RefusedFull, RefusedLate, Draining:
		return "Refused: " + strings.Replace(f.Error(), "\n", ": ", 1)
	case ModelError:
		return "Model error: " + f.Error()
	case Dropped:
		return "Dropped: " + f.Error()
	case BadInput:
		return "Bad input: " + f.Error()
	}
	return "Container error: " + f.Error()
}
