package models

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// work is an update on its way.
type work interface {
	// checked says what is wrong with the update by itself, or nil.
	checked() *stream.Rejection
	// run applies it as far as it is not. Its error is a rejection, or may pass.
	run(ctx context.Context) (Acknowledgement, error)
}

// workOf is what there is to do for a record, which was committed before or not, and how to end it.
func (h *handler) workOf(r *record, repeated bool) (w work, end func()) {
	origin := originOf(h.cfg.Name, r.StreamRecord, &r.Update)
	switch {
	case r.Model != nil:
		d := &deployment{handler: h, model: r.Model, origin: origin, linked: repeated}
		return d, func() { d.parcel.remove() }
	case r.Mapping != nil:
		return &mapping{handler: h, what: r.Mapping}, func() {}
	case r.Remove != nil:
		return &removal{handler: h, what: r.Remove, origin: origin}, func() {}
	case r.Policy != nil:
		return &configuration{handler: h, change: r.Policy, origin: origin, later: r.later}, func() {}
	}
	return &configuration{handler: h, change: r.Ensemble, origin: origin, later: r.later}, func() {}
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
// ctx ends, when it waits and the job is to end, and with errMissing. Of a patient update it
// waits for what is missing, until others come, which may bring it: then it fails with errPutOff.
func (h *handler) finish(ctx context.Context, name string, w work, left *grace, others <-chan struct{}) (Acknowledgement, *stream.Rejection, error) {
	if why := w.checked(); why != nil {
		return Acknowledgement{}, why, nil
	}
	idle, stop := h.untilEnding(ctx, others)
	defer stop()
	patient := others != nil
	for pause := stream.Backoff(); ; {
		ack, err := h.attempt(ctx, w)
		if _, missing := errors.AsType[errMissing](err); missing && !patient || err != nil && ctx.Err() != nil {
			return Acknowledgement{}, nil, err
		}
		if errors.Is(err, errSuspended) {
			left.renew()
			if err := h.job.Gate.Wait(idle); err != nil {
				return Acknowledgement{}, nil, err
			}
			continue
		}
		why, _ := errors.AsType[*stream.Rejection](refused(err, "it"))
		if why == nil {
			why = left.end(err, time.Now())
		}
		if err == nil || why != nil {
			h.job.Conditions.End(name)
			return ack, why, nil
		}
		h.job.Conditions.Begin(name, err)
		h.metrics.retries.Inc()
		if !pause.Sleep(idle) {
			return Acknowledgement{}, nil, context.Cause(idle)
		}
	}
}

var (
	errEnding = errors.New("the job is to end")
	errPutOff = errors.New("other updates have come")
)

// untilEnding is a context that also ends when the job is to end, what waits then would be
// waited for in vain, and when other updates come.
func (h *handler) untilEnding(ctx context.Context, others <-chan struct{}) (context.Context, context.CancelFunc) {
	idle, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-h.job.Ending():
			cancel(errEnding)
		case <-others:
			signal(h.others) // to those that wait, too
			cancel(errPutOff)
		case <-idle.Done():
		}
	}()
	return idle, func() { cancel(nil) }
}

// attempt is one try. It is cut off when the stream is suspended, and goes on later with the
// step that it was at.
func (h *handler) attempt(ctx context.Context, w work) (Acknowledgement, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	open, stop := h.job.Gate.While(ctx)
	defer stop()
	ack, err := w.run(open)
	if is(err, http.StatusForbidden) {
		err = h.forbidden(open, err)
	}
	if err != nil && open.Err() != nil && ctx.Err() == nil {
		err = errSuspended
	}
	return ack, err
}

// forbidden tells what a good key may not do from a key that is none.
func (h *handler) forbidden(ctx context.Context, err error) error {
	role, asked := h.api.role(ctx)
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
