package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// Core is what the server asks.
type Core interface {
	inference.Repository
	// App finds a registered app, or fails with serving.ErrUnknownApp or serving.ErrNoCatalog.
	App(name string) (*serving.App, error)
	// Predict answers queries to one app in their order, each by its deadline.
	Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error)
	// Stream asks a query whose answer is to come in parts.
	Stream(q *serving.Query) (serving.Parts, error)
	// Inferences are what the queries of an app came to since this gateway has known it.
	Inferences(app string) serving.Inferences
}

// Updater takes feedback.
type Updater interface {
	// Feedback takes feedback on one app, and says in its order what became of each.
	Feedback(ctx context.Context, list []serving.Feedback) ([]serving.Learned, error)
}

// Server is the port for gRPC. It runs once.
type Server struct {
	proto.UnsafeGRPCInferenceServiceServer // a call that is missing does not compile

	config    Config
	core      Core
	updater   Updater // nil: there is none
	admission *admission.Control
	log       *slog.Logger
	draining  atomic.Bool
	receiving receiving
}

// New returns a server of core, and of updater unless that is nil; an admission decides who may ask what.
// It starts nothing.
func New(config Config, core Core, updater Updater, control *admission.Control, log *slog.Logger) *Server {
	knowDeflate()
	s := &Server{config: config.withDefaults(), core: core, updater: updater, admission: control, log: log}
	s.receiving.most, s.receiving.within = s.config.MaxReceiving, s.config.ReceiveTimeout
	return s
}

const (
	// pingAfter is after how long without anything a client is asked whether it is there.
	pingAfter = time.Minute
	// pingWithin is how long it has to answer.
	pingWithin = 20 * time.Second
	// pingsEvery is how often a client may ask that.
	pingsEvery = 10 * time.Second
	// agedAfter is after how long a connection is asked to be made anew, so that clients find other gateways.
	agedAfter = 30 * time.Minute
	// window is how much of one call's message may be on its way, and of all of a connection twice that.
	window = 1 << 20
	// workers answer calls one after another: their stacks have grown already. More calls at a time get a
	// goroutine each.
	workers = 128
)

// Run serves ln, which it closes, until ctx ends or ln fails. Calls in flight get DrainTimeout to end,
// and are cut then.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(s.config.MaxMessageBytes), grpc.MaxSendMsgSize(1<<31-1),
		grpc.MaxConcurrentStreams(uint32(s.config.MaxCalls)), grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(2*window), grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWithin, MaxConnectionAge: agedAfter, MaxConnectionAgeGrace: agedAfter}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsEvery, PermitWithoutStream: true}),
		grpc.NumStreamWorkers(workers), grpc.InTapHandle(s.tap),
		grpc.ChainUnaryInterceptor(s.recoverUnary), grpc.ChainStreamInterceptor(s.recoverStream),
		grpc.WaitForHandlers(true),
	)
	proto.RegisterGRPCInferenceServiceServer(server, s)
	proto.RegisterTopsailServer(server, queries{Server: s})
	checks := health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, checks)
	started := s.admission.Started()
	states(checks, started)
	if !started {
		go s.start(ctx, checks)
	}
	reflection.Register(server)

	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(ln, s.config.MaxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("grpcapi: serve %v: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	checks.Shutdown() // says that calls should go elsewhere
	cut := time.AfterFunc(s.config.DrainTimeout, server.Stop)
	defer cut.Stop()
	server.GracefulStop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("grpcapi: serve %v: %w", ln.Addr(), err)
	}
	return nil
}

// states says of the server and of its services whether they serve.
func states(checks *health.Server, serve bool) {
	state := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serve {
		state = grpc_health_v1.HealthCheckResponse_SERVING
	}
	for _, service := range []string{"", proto.GRPCInferenceService_ServiceDesc.ServiceName, proto.Topsail_ServiceDesc.ServiceName} {
		checks.SetServingStatus(service, state)
	}
}

// start says that they serve, once there is a catalog.
func (s *Server) start(ctx context.Context, checks *health.Server) {
	for !s.admission.Started() {
		if !retry.Sleep(ctx, startsWithin) {
			return
		}
	}
	states(checks, true)
}

// startsWithin is how soon it is known that the first catalog has come.
const startsWithin = 50 * time.Millisecond

// maxHeaderBytes bounds the metadata of a call.
const maxHeaderBytes = 16 << 10
