package models

import (
	"errors"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/stream"
)

// errAway is an error of fetching that may pass.
type errAway struct{ err error }

func (e errAway) Error() string { return e.err.Error() }
func (e errAway) Unwrap() error { return e.err }

// errMissing is an app, a model or a stream that an update names, and which may still come.
type errMissing struct{ kind, name string }

func (e errMissing) Error() string { return "there is no " + e.kind + " " + strconv.Quote(e.name) }

// errServing is a refusal to remove a version that answers until the current one can.
type errServing struct{ err error }

func (e errServing) Error() string { return e.err.Error() }

// grace is how long an update waits for what it lacks, from the first try that missed it: for
// a proxy that lets it pass, too.
// What else it waits for, such as the management API, does not count.
type grace struct {
	most  time.Duration
	since time.Time // it lacks something; zero: it does not
}

// end is the rejection of an update that failed at a time and has waited for long enough; nil:
// it is to be tried again.
func (g *grace) end(err error, now time.Time) *stream.Rejection {
	why := lackOf(err)
	switch {
	case why == nil:
		g.renew()
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= g.most:
		return why
	}
	return nil
}

// renew begins anew.
func (g *grace) renew() { g.since = time.Time{} }

// lackOf is the rejection of an update that will not have what it lacks; nil: it lacks nothing.
func lackOf(err error) *stream.Rejection {
	if away, ok := errors.AsType[errAway](err); ok {
		return rejected(LocationAway, "the model cannot be fetched: %v", away.err)
	}
	if missing, ok := errors.AsType[errMissing](err); ok {
		return rejected(Unknown, "%v: make it, and send the update again", missing)
	}
	if serves, ok := errors.AsType[errServing](err); ok {
		return rejected(Refused, "the management API refuses the removal: %v", serves.err)
	}
	if r, ok := errors.AsType[*apiclient.Problem](err); ok && ofProxy(r) {
		return rejected(Refused, "what is before the management API refuses it: %v", r)
	}
	return nil
}
