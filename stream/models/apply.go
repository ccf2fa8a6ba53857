package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"topsail/stream/internal/loop"
)

// applier applies updates, each for as long as it takes.
type applier struct {
	*Job
	api       *API
	locations Locations
	python    string // of models that name none
	mostBytes int64
	patience  time.Duration
}

// work is an update on its way.
type work interface {
	// checked says what is wrong with the update by itself, or nil.
	checked() *poison
	// run applies it as far as it is not. Its error is a poison, or may pass.
	run(ctx context.Context) (Acknowledgement, error)
}

var (
	errAgain = errors.New("somebody else changed it meanwhile")
	// errKey is that of a key that may not deploy.
	errKey = errors.New("the stream's key has not the role deployer at the management API: give it another in key_file")
)

// errMissing is an app or a model that an update names, and which may still come.
type errMissing struct{ kind, name string }

func (e errMissing) Error() string { return fmt.Sprintf("there is no %s %q", e.kind, e.name) }

// refused makes a poison of what the API refuses because of what it was asked.
func refused(err error, what string) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.passing() || r.Status == http.StatusForbidden { // which may be about the key
		return err
	}
	if r.Status == http.StatusRequestEntityTooLarge {
		return poisoned(ModelTooLarge, "the management API refuses %s: %v", what, err)
	}
	return poisoned(Refused, "the management API refuses %s: %v", what, err)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// content opens the model itself.
func (a *applier) content(ctx context.Context, m *Model) (io.ReadCloser, error) {
	if m.Location == "" {
		return io.NopCloser(bytes.NewReader(m.Data)), nil
	}
	return a.locations.open(ctx, m.Location)
}

// apply takes an update to its end, trying again what may pass: without an end where that is
// about the management API, and with patience where it is about the update. It fails when
// ctx ends, and unless it is to be patient with errMissing.
func (a *applier) apply(ctx context.Context, name string, w work, patient bool) (Acknowledgement, *poison, error) {
	if why := w.checked(); why != nil {
		return Acknowledgement{}, why, nil
	}
	idle, stop := a.untilEnding(ctx)
	defer stop()
	began, pause := time.Now(), loop.Pause{}
	for {
		if err := a.loop.Gate.Wait(idle); err != nil {
			return Acknowledgement{}, nil, err
		}
		ack, err := a.attempt(ctx, w)
		if _, missing := errors.AsType[errMissing](err); missing && !patient {
			return Acknowledgement{}, nil, err
		}
		why, final := a.judge(err, time.Since(began))
		switch {
		case final:
			a.troubles.End(name)
			return ack, why, nil
		case ctx.Err() != nil:
			return Acknowledgement{}, nil, context.Cause(ctx)
		}
		a.troubles.Begin(name, err)
		a.metrics.again.Inc()
		pause.Wait(idle)
		if idle.Err() != nil {
			return Acknowledgement{}, nil, context.Cause(idle)
		}
	}
}

// untilEnding is a context that also ends when the job is to end: what waits then would be
// waited for in vain.
func (a *applier) untilEnding(ctx context.Context) (context.Context, context.CancelFunc) {
	idle, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-a.ending:
			cancel()
		case <-idle.Done():
		}
	}()
	return idle, cancel
}

// attempt is one try, which may not take for ever.
func (a *applier) attempt(ctx context.Context, w work) (Acknowledgement, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*fetchWithin)
	defer cancel()
	ack, err := w.run(ctx)
	if is(err, http.StatusForbidden) {
		err = a.forbidden(ctx, err)
	}
	return ack, err
}

// forbidden tells what a good key may not do from a key that is none.
func (a *applier) forbidden(ctx context.Context, err error) error {
	role, asked := a.api.role(ctx)
	switch {
	case asked != nil:
		return asked
	case role == "deployer" || role == "admin":
		return poisoned(Refused, "the management API refuses it: %v", err)
	}
	return errKey
}

// judge says whether an update is at its end, and if it is one, the poison.
func (a *applier) judge(err error, since time.Duration) (why *poison, final bool) {
	if p, ok := errors.AsType[*poison](err); ok || err == nil {
		return p, true
	}
	if away, ok := errors.AsType[errAway](err); ok && since >= a.patience {
		return poisoned(LocationAway, "the model cannot be fetched: %v", away.err), true
	}
	if missing, ok := errors.AsType[errMissing](err); ok && since >= a.patience {
		return poisoned(Unknown, "%v: make it, and send the update again", missing), true
	}
	why, final = errors.AsType[*poison](refused(err, "it"))
	return why, final
}
