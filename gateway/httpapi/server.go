package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/internal/connlimit"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// maxHeaderBytes bounds request line and headers. It is memory that every
// connection holds, idle ones too.
const maxHeaderBytes = 16 << 10

// lastWords is how long queries have to be answered once they were cancelled.
const lastWords = time.Second

// Server is the query port. It runs once.
type Server struct {
	config   Config
	core     Core
	updater  Updater // nil: there is none
	log      *slog.Logger
	draining atomic.Bool

	origins           *http.CrossOriginProtection
	decoding          chan struct{} // see heavyBody
	reading           atomic.Int32  // bodies that are read right now
	bodies            sync.Pool     // see conn
	connectionsClosed *obs.CounterVec
	admission         *admission.Control
}

// New returns a server of core, and of updater unless that is nil. It starts nothing. It panics at
// an allowed origin that is not valid.
func New(config Config, core Core, updater Updater, log *slog.Logger) *Server {
	s := &Server{config: config.withDefaults(), core: core, updater: updater, log: log, origins: http.NewCrossOriginProtection(), decoding: newSlots()}
	for _, origin := range s.config.AllowedOrigins {
		if err := s.origins.AddTrustedOrigin(origin); err != nil {
			panic(fmt.Sprintf("httpapi: allowed origin: %v", err))
		}
	}
	s.admission = admission.New(admission.Config{Keys: s.config.Keys, RequireKeys: s.config.RequireKeys, Started: s.started, Metrics: s.config.Metrics})
	s.connectionsClosed = s.config.Metrics.Counters("topsail_gateway_connections_closed_total",
		"Connections closed because there were too many: idle (it waited longest), full (all others were being answered), address (too many from one address).", "reason")
	for _, why := range connlimit.Reasons() {
		s.connectionsClosed.WithLabelValues(string(why)) // it is shown from the start
	}
	s.config.Metrics.GaugeFunc("topsail_gateway_inflight_bytes", "Memory of requests and answers above 8 KiB in progress.", func() float64 { return float64(s.config.Budget.Used()) })
	s.config.Metrics.GaugeFunc("topsail_gateway_inflight_bytes_max", "The limit of that memory, above which requests are refused: max_inflight_bytes.", func() float64 { return float64(s.config.Budget.Limit()) })
	return s
}

// started says whether there is a catalog.
func (s *Server) started() bool {
	_, err := s.core.App("")
	return !errors.Is(err, serving.ErrNoCatalog)
}

// Admission decides who may ask what. Other listeners of the gateway share it.
func (s *Server) Admission() *admission.Control { return s.admission }

// Serve takes in a new catalog: its keys and limits hold from now on.
func (s *Server) Serve(cat *serving.Catalog) { s.admission.Serve(cat) }

// Run serves ln, which it closes, until ctx ends or ln fails. It returns when no
// connection and no query is left: queries in flight get DrainTimeout to end,
// their answers say Connection: close, and then they are cancelled. An error says
// that ln failed or that connections had to be cut.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	queries, cancelQueries := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelQueries()
	l := s.newListener(ln)
	server := s.server(queries, l)

	var back sync.WaitGroup
	back.Go(func() { s.config.Budget.GiveBack(queries) })

	var serveErr error
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveErr = server.Serve(l)
	}()
	select {
	case <-served:
	case <-ctx.Done():
	}

	drainErr := s.drain(server, l, cancelQueries)
	<-served
	cancelQueries()
	l.cutAll()
	l.WaitReleased()
	back.Wait()
	if ctx.Err() == nil {
		return fmt.Errorf("httpapi: serve %v: %w", ln.Addr(), cmp.Or(serveErr, net.ErrClosed))
	}
	return drainErr
}

// drain stops accepting and gives the queries in flight time to end.
func (s *Server) drain(server *fasthttp.Server, l listener, cancelQueries func()) error {
	s.draining.Store(true)
	defer l.Close() // the shutdown does not, if serving has only just begun
	l.cutUnused()

	defer time.AfterFunc(s.config.DrainTimeout, cancelQueries).Stop()
	limit := s.config.DrainTimeout + lastWords
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := server.ShutdownWithContext(ctx); ctx.Err() != nil {
		return fmt.Errorf("httpapi: drain: connections that were open after %v are closed: %w", limit, err)
	}
	return nil
}

// server assembles Fiber, its routes and fasthttp's server beneath. Queries are
// run under the given context.
func (s *Server) server(queries context.Context, l listener) *fasthttp.Server {
	app := fiber.New(fiber.Config{
		StrictRouting:                true,
		CaseSensitive:                true,
		BodyLimit:                    s.config.MaxBodyBytes,
		ReadBufferSize:               maxHeaderBytes,
		ReadTimeout:                  s.config.ReadTimeout,
		WriteTimeout:                 s.config.WriteTimeout,
		IdleTimeout:                  s.config.IdleTimeout,
		Concurrency:                  2*s.config.MaxConnections + spare, // the listener refuses earlier
		ErrorHandler:                 s.fail,
		StreamRequestBody:            true, // what a body may take is decided by its header
		DisablePreParseMultipartForm: true,
		DisableStartupMessage:        true,
	})
	if len(s.config.AllowedOrigins) > 0 {
		app.Use(crossOrigin(s.config.AllowedOrigins))
	}
	predict := func(c *fiber.Ctx) error { return s.predict(queries, c) }
	update := func(c *fiber.Ctx) error { return s.update(queries, c) }
	app.Post("/:app/predict", predict)
	app.Post("/:app/predict/", predict)
	app.Post("/:app/update", update)
	app.Post("/:app/update/", update)
	s.inferenceRoutes(queries, app)
	s.openaiRoutes(queries, app)
	app.Get(healthPath, s.health)
	app.Get("/openapi.json", s.document)
	if s.config.Inspect != nil {
		app.Get("/metrics", s.metrics())
	}
	app.Handler() // builds the routes

	server := app.Server()
	server.Handler = s.everyRequest(server.Handler)
	server.ErrorHandler = lingering(server.ErrorHandler)
	server.HeaderReceived = s.header
	server.ConnState = l.track
	return server
}
