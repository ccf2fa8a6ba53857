package serving

import "errors"

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
