package grpcapi

import (
	"container/list"
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
)

// receiving bounds the calls of one request whose message has not arrived, in number and in time: each may
// hold as much memory as a message may have. Hooks of grpc-go for statistics would tell as much, and make
// every call a tenth dearer.
type receiving struct {
	most   int
	within time.Duration

	mu    sync.Mutex // guards the following
	calls list.List  // of *arrival, the oldest first
	timed bool       // a timer looks for those that are late
}

// full says whether there are too many of them.
func (r *receiving) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls.Len() < r.most {
		return false
	}
	for e := r.calls.Front(); e != nil; {
		a := e.Value.(*arrival)
		if e = e.Next(); a.Err() != nil { // it has ended without a message
			r.forget(a)
		}
	}
	return r.calls.Len() >= r.most
}

// forget takes a call out, if it is there. r.mu is held.
func (r *receiving) forget(a *arrival) {
	if a.awaited != nil {
		r.calls.Remove(a.awaited)
		a.awaited = nil
	}
}

// dropLate ends the calls whose messages are late, and comes back for the next one.
func (r *receiving) dropLate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.calls.Front(); e != nil; e = r.calls.Front() {
		a := e.Value.(*arrival)
		if left := r.within - time.Since(a.began); left > 0 {
			time.AfterFunc(left, r.dropLate)
			return
		}
		r.forget(a)
		a.cancel()
	}
	r.timed = false
}

// arrival is the context of a call that has begun.
type arrival struct {
	context.Context
	receiving *receiving
	key       []byte             // that it shows; empty: none
	cancel    context.CancelFunc // of the call
	began     time.Time
	awaited   *list.Element // nil: its message is here, or is not awaited
}

type arrivalKey struct{}

// Value implements context.Context: a call's arrival is found by any context of the call.
func (a *arrival) Value(key any) any {
	if key == (arrivalKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// expect is the context of a call that shows a key. It is cancelled if the call's message does not arrive in time.
func (r *receiving) expect(ctx context.Context, method string, key []byte) context.Context {
	a := &arrival{receiving: r, key: key, began: time.Now()}
	a.Context, a.cancel = context.WithCancel(ctx)
	if sendsMany(method) {
		return a
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a.awaited = r.calls.PushBack(a)
	if !r.timed {
		r.timed = true
		time.AfterFunc(r.within, r.dropLate)
	}
	return a
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
	if a := arrivalOf(ctx); a != nil {
		a.receiving.mu.Lock()
		defer a.receiving.mu.Unlock()
		a.receiving.forget(a)
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
