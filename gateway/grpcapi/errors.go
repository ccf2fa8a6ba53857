package grpcapi

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// invalid refuses a request that is wrong in itself.
func invalid(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// statusOf is the one table from errors to what clients get. Errors that they may not see are logged.
func (s *Server) statusOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if r, ok := admission.Refused(err); ok {
		return refusal(r)
	}
	if e, ok := errors.AsType[*inference.NoPrediction](err); ok {
		return status.Error(codeOf(e.Cause), e.Explanation)
	}
	if e, ok := errors.AsType[*inference.UnknownVersion](err); ok {
		return status.Error(codes.NotFound, e.Error())
	}
	if e, ok := errors.AsType[*inference.NotLoaded](err); ok && e.Later {
		return status.Error(codes.Unavailable, e.Text)
	} else if ok {
		return status.Error(codes.FailedPrecondition, e.Text)
	}
	if e, ok := errors.AsType[*serving.QueryError](err); ok && e.UnknownVersion {
		return status.Error(codes.NotFound, e.Cause)
	} else if ok {
		return status.Error(codes.InvalidArgument, e.Cause)
	}
	switch {
	case errors.Is(err, errNoMemory):
		s.admission.Count("", admission.Memory)
		return status.Error(codes.Unavailable, "requests and answers in progress use all of their memory: send the request again in a second, or raise max_inflight_bytes")
	case errors.Is(err, serving.ErrUnknownApp):
		return status.Error(codes.NotFound, "no app of this name is registered: register it at the admin port, or check its spelling")
	case errors.Is(err, serving.ErrUnjudged):
		return status.Error(codes.Unavailable, "no model of this app answers now, so the feedback cannot be evaluated: send it again when one does")
	case errors.Is(err, serving.ErrUnavailable):
		return status.Error(codes.Unavailable, "the store is unavailable: send it again, which is safe")
	case errors.Is(err, serving.ErrNoCatalog):
		return status.Error(codes.Unavailable, "this gateway has not loaded the apps yet: send the query again, or to another gateway")
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err() // the caller has gone, or its deadline passed
	case s.draining.Load() && errors.Is(err, context.Canceled):
		return status.Error(codes.Unavailable, "this gateway is stopping: send it again")
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the call's deadline had passed when it came")
	}
	s.log.Error("call failed", "err", err)
	return status.Error(codes.Internal, "the gateway failed on this call: its log says why")
}

// errNoMemory refuses a request that the budget has no room for.
var errNoMemory = errors.New("max_inflight_bytes is used up")

// refusal is the table for what admission refuses.
func refusal(r *admission.Refusal) error {
	code := codes.ResourceExhausted
	switch r.Reason {
	case admission.NoKey, admission.WrongKey:
		code = codes.Unauthenticated
	case admission.Forbidden:
		code = codes.PermissionDenied
	}
	st := status.New(code, r.Cause)
	if r.Wait > 0 {
		if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.Wait.Round(time.Millisecond))}); err == nil {
			st = detailed
		}
	}
	return st.Err()
}

// codeOf is the code of a query without an output.
func codeOf(cause serving.Cause) codes.Code {
	switch cause {
	case serving.BadInput:
		return codes.InvalidArgument
	case serving.MissedSLO:
		return codes.DeadlineExceeded
	case serving.RefusedFull, serving.RefusedLate:
		return codes.ResourceExhausted
	case serving.NoReplica, serving.Draining:
		return codes.Unavailable
	}
	return codes.Internal
}
