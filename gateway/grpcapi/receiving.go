package grpcapi

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
)

// receiving bounds the calls of one request whose message has not arrived, in number and in time: each may
// hold as much memory as a message may have. Hooks of grpc-go for statistics would tell as much, and make
// every call a tenth dearer.
type receiving struct {
	most   int64
	within time.Duration
	now    atomic.Int64
}

// full says whether there are too many of them.
func (r *receiving) full() bool { return r.now.Load() >= r.most }

// arrival is a call that has begun.
type arrival struct {
	key    []byte             // that it shows; empty: none
	cancel context.CancelFunc // of the call
	over   func()             // the message is here, or the call has ended; nil: it is not awaited
}

type arrivalKey struct{}

// expect is the context of a call that shows a key. It is cancelled if the call's message does not arrive in time.
func (r *receiving) expect(ctx context.Context, method string, key []byte) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	a := &arrival{key: key, cancel: cancel}
	if !sendsMany(method) {
		r.now.Add(1)
		late := time.AfterFunc(r.within, cancel)
		over := sync.OnceFunc(func() { late.Stop(); r.now.Add(-1) })
		ended := context.AfterFunc(ctx, over)
		a.over = func() { ended(); over() }
	}
	return context.WithValue(ctx, arrivalKey{}, a)
}

// sendsMany says whether clients send messages to a method at any time.
func sendsMany(method string) bool {
	switch method {
	case proto.GRPCInferenceService_ModelStreamInfer_FullMethodName,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo":
		return true
	}
	return false
}

// arrivalOf is that of a call.
func arrivalOf(ctx context.Context) *arrival {
	a, _ := ctx.Value(arrivalKey{}).(*arrival)
	return a
}

// arrived notes that the message of a call is here.
func arrived(ctx context.Context) {
	if a := arrivalOf(ctx); a != nil && a.over != nil {
		a.over()
	}
}

// cut ends a call from outside its handler: what that sends and receives fails from now on.
func cut(ctx context.Context) {
	if a := arrivalOf(ctx); a != nil {
		a.cancel()
	}
}

// arriving is a stream that notes when a message has arrived.
type arriving struct{ grpc.ServerStream }

func (s arriving) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	arrived(s.Context())
	return err
}
