package grpcapi

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/serving"
)

// tap refuses calls before anything is kept of them: those without a good key, and those that are too many.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if s.receiving.full() {
		return nil, status.Error(codes.Unavailable, "too many calls are being received: call again in a second, or another gateway")
	}
	key := shown(info.Header.Get)
	if !open(info.FullMethodName) {
		if _, err := s.admission.Identify(key, "", time.Now()); err != nil {
			return nil, s.statusOf(ctx, err)
		}
	}
	return s.receiving.expect(ctx, info.FullMethodName, key), nil
}

// open says whether a method needs no key: those that say whether the server is there, as over HTTP.
func open(method string) bool {
	switch method {
	case proto.GRPCInferenceService_ServerLive_FullMethodName, proto.GRPCInferenceService_ServerReady_FullMethodName, proto.GRPCInferenceService_ServerMetadata_FullMethodName:
		return true
	}
	return strings.HasPrefix(method, "/grpc.health.v1.")
}

// shown is the key that a call shows; empty: none.
func shown(values func(name string) []string) []byte {
	first := func(name string) []byte {
		if all := values(name); len(all) > 0 {
			return []byte(all[0])
		}
		return nil
	}
	return access.Shown(first("x-api-key"), first("authorization"))
}

// keyOf is the key that a call has shown.
func keyOf(ctx context.Context) []byte {
	if a := arrivalOf(ctx); a != nil {
		return a.key
	}
	return nil
}

// call is what every call about an app says.
type call struct {
	app      *serving.App
	charge   func(n int) error
	received time.Time
	timeout  time.Duration // until the call's deadline; 0: it has none
	priority int           // the highest that it can have
	lease    budget.Lease  // of the call and its answer, which its handler releases
}

// open reads a call as far as all of them are alike, if the caller may ask the app.
func (s *Server) open(ctx context.Context, name string) (c call, err error) {
	c.received, c.lease = time.Now(), s.config.Budget.Lease()
	who, err := s.admission.Admit(keyOf(ctx), name, c.received)
	if err != nil {
		return c, err
	}
	if c.app, err = s.core.App(name); err != nil {
		return c, err
	}
	if c.priority, err = saidPriority(ctx); err != nil {
		return c, err
	}
	c.priority = max(c.priority, who.Priority())
	c.charge = func(n int) error { return s.admission.Charge(who, c.app, n, c.received) }
	if deadline, ok := ctx.Deadline(); ok {
		if c.timeout = time.Until(deadline); c.timeout <= 0 {
			return c, context.DeadlineExceeded
		}
	}
	return c, s.admission.May(who, c.app)
}

// priorityKey is the metadata in which a caller may set the priority of its queries.
const priorityKey = "x-priority"

// saidPriority is the priority that the caller sets in the metadata, 0 if it sets none.
func saidPriority(ctx context.Context) (int, error) {
	said := metadata.ValueFromIncomingContext(ctx, priorityKey)
	if len(said) == 0 {
		return 0, nil
	}
	p, err := strconv.Atoi(said[0])
	if err != nil || p < 0 || p > serving.LowestPriority {
		return 0, invalid(fmt.Errorf("%s must be between 0, the highest, and %d", priorityKey, serving.LowestPriority))
	}
	return p, nil
}

// seen are the apps that a caller may know of.
func (s *Server) seen(ctx context.Context) ([]*serving.App, error) {
	who, err := s.admission.Asker(keyOf(ctx), "", time.Now())
	if err != nil {
		return nil, err
	}
	return s.admission.Visible(who, s.core.App)
}

// recoverUnary turns a panic, and errors that clients may not see, into an answer.
func (s *Server) recoverUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	defer s.recovered(info.FullMethod, &err)
	arrived(ctx)
	answer, err = next(ctx, req)
	return answer, s.statusOf(ctx, err)
}

func (s *Server) recoverStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer s.recovered(info.FullMethod, &err)
	return s.statusOf(stream.Context(), next(srv, arriving{stream}))
}

func (s *Server) recovered(method string, err *error) {
	if v := recover(); v != nil {
		s.log.Error("call panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the gateway failed on this call: its log says why")
	}
}
