package models

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/internal/loop"
)

// work is an update on its way.
type work interface {
	// checked says what is wrong with the update by itself, or nil.
	checked() *rejection
	// run applies it as far as it is not. Its error is a rejection, or may pass.
	run(ctx context.Context) (Acknowledgement, error)
}

var (
	errAgain     = errors.New("it was changed concurrently")
	errKey       = errors.New("the stream's key has not the role deployer at the management API: give it another in key_file")
	errSuspended = errors.New("the stream is suspended")
)

// attemptWithin bounds one try to apply an update.
const attemptWithin = fetchWithin + uploadWithin

// finish takes an update to its end, trying again what may pass: without an end where that is
// about the management API, and with patience where it is about the update. It fails when
// ctx ends, when it waits and the job is to end, and unless it is to be patient with errMissing.
func (j *Job) finish(ctx context.Context, name string, w work, patient bool) (Acknowledgement, *rejection, error) {
	if why := w.checked(); why != nil {
		return Acknowledgement{}, why, nil
	}
	idle, stop := j.untilEnding(ctx)
	defer stop()
	left, pause := grace{most: j.cfg.Patience}, loop.Pause{}
	for {
		ack, err := j.attempt(ctx, w)
		if _, missing := errors.AsType[errMissing](err); missing && !patient || err != nil && ctx.Err() != nil {
			return Acknowledgement{}, nil, err
		}
		if errors.Is(err, errSuspended) {
			left.renew()
			if err := j.loop.Gate.Wait(idle); err != nil {
				return Acknowledgement{}, nil, err
			}
			continue
		}
		why, _ := errors.AsType[*rejection](refused(err, "it"))
		if why == nil {
			why = left.end(err, time.Now())
		}
		if err == nil || why != nil {
			j.conditions.End(name)
			return ack, why, nil
		}
		j.conditions.Begin(name, err)
		j.metrics.again.Inc()
		pause.Wait(idle)
		if idle.Err() != nil {
			return Acknowledgement{}, nil, context.Cause(idle)
		}
	}
}

// untilEnding is a context that also ends when the job is to end: what waits then would be
// waited for in vain.
func (j *Job) untilEnding(ctx context.Context) (context.Context, context.CancelFunc) {
	idle, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-j.ending:
			cancel()
		case <-idle.Done():
		}
	}()
	return idle, cancel
}

// attempt is one try. It is cut off when the stream is suspended, and goes on later with the
// step that it was at.
func (j *Job) attempt(ctx context.Context, w work) (Acknowledgement, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	open, stop := j.loop.Gate.While(ctx)
	defer stop()
	ack, err := w.run(open)
	if is(err, http.StatusForbidden) {
		err = j.forbidden(open, err)
	}
	if err != nil && open.Err() != nil && ctx.Err() == nil {
		err = errSuspended
	}
	return ack, err
}

// forbidden tells what a good key may not do from a key that is none.
func (j *Job) forbidden(ctx context.Context, err error) error {
	role, asked := j.api.role(ctx)
	switch {
	case asked != nil:
		return asked
	case role.Covers(serving.RoleDeployer):
		return rejected(Refused, "the management API refuses it: %v", err)
	}
	return errKey
}

// refused makes a rejection of what the API refuses because of what it was asked.
func refused(err error, what string) error {
	r, ok := errors.AsType[*apiclient.Problem](err)
	if !ok || passing(r) || r.Status == http.StatusForbidden { // which may be about the key
		return err
	}
	if r.Status == http.StatusRequestEntityTooLarge {
		return rejected(ModelTooLarge, "the management API refuses %s: %v", what, err)
	}
	return rejected(Refused, "the management API refuses %s: %v", what, err)
}
