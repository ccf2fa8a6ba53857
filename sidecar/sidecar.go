package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/container"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// DefaultLimits bound the queue of one model version.
var DefaultLimits = queue.Limits{Items: 4096, Bytes: 256 << 20}

const (
	// DefaultDrain is how long a stopping sidecar waits for its last answers, unless they run side by side:
	// those end with their queries, which gateways cancel when their time is over.
	DefaultDrain = 10 * time.Second

	drainTick = 2 * time.Millisecond // how often a draining sidecar looks
	maxConns  = 1024                 // of gateways, and of containers
)

// Config says what a sidecar serves.
type Config struct {
	Replica        string // the name of this replica
	Models         []*serving.Version
	Limits         queue.Limits  // zero: DefaultLimits
	Stall          time.Duration // zero: what package batch allows a batch of its size
	Drain          time.Duration // zero: DefaultDrain
	ContainerToken []byte        // when set, containers must show it
	GatewayToken   func() []byte // when set, gateways must show what it is then
	Demand         *demand.Meter // nil: demand is not counted
	Fetch          Fetch         // gets the bundles of what a host holds; needed where one of Models is a host
	Stalled        func()        // when set, called after a container was lost because it hung
	OwnsV1         bool          // the version 1 container was started for this replica: it ends with it, and is started anew when it hangs
}

// Sidecar is one replica.
type Sidecar struct {
	cfg     Config
	metrics *Metrics
	log     *slog.Logger
	pools   []*pool // of cfg.Models, by id
	host    *host   // nil: none of them is one

	mu       sync.Mutex // guards gateways
	gateways map[*gatewayConn]struct{}
}

// New makes a sidecar; Run starts it. Without metrics they are shown nowhere, and without a log
// nothing is logged.
func New(cfg Config, metrics *Metrics, log *slog.Logger) *Sidecar {
	if metrics == nil {
		metrics = NewMetrics(obs.NewRegistry())
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if cfg.Limits == (queue.Limits{}) {
		cfg.Limits = DefaultLimits
	}
	if cfg.Drain == 0 {
		cfg.Drain = DefaultDrain
	}
	s := &Sidecar{cfg: cfg, metrics: metrics, log: log.With("replica", cfg.Replica), gateways: map[*gatewayConn]struct{}{}}
	for i, m := range cfg.Models {
		p := newPool(uint32(i), m, cfg.Limits, metrics.pool(m.ModelID, cfg.Replica), s.poolChanged)
		s.pools = append(s.pools, p)
	}
	for _, p := range s.pools {
		if p.model.Host != nil && s.host == nil {
			s.host = newHost(s, p)
			s.host.last, p.host = uint32(len(s.pools)), s.host
		}
	}
	return s
}

// Run serves gateways and containers until ctx ends, then drains: it takes no more queries, waits
// for the answers to those it has, and disconnects all peers. It closes both listeners.
func (s *Sidecar) Run(ctx context.Context, gateways, containers net.Listener) error {
	for _, p := range s.pools {
		p.metrics.demand = s.cfg.Demand.Open(p.model.ModelID, s.profileOf(p))
		defer p.metrics.demand.Close()
		s.metrics.gauges.add(p, s.cfg.Replica)
		defer s.metrics.gauges.remove(p)
		defer s.metrics.forget(p.model.ModelID, s.cfg.Replica)
		defer s.metrics.custom.forget(p.model.ModelID, s.cfg.Replica)
	}
	// Connections outlive ctx by the time that draining takes, and those with
	// gateways the others, so that every query gets its answer.
	asking, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	serving, stop := context.WithCancel(asking)
	defer stop()
	var askers, servers sync.WaitGroup
	askers.Go(func() { s.accept(ctx, asking, gateways, s.serveGateway) })
	servers.Go(func() { s.accept(ctx, serving, containers, s.serveContainer) })
	if s.host != nil {
		servers.Go(func() { s.host.run(serving) })
	}
	for _, p := range s.pools {
		if p.model.Container.Protocol == "v1" {
			for range max(1, p.model.Container.Connections) {
				servers.Go(func() { s.serveV1(serving, p) })
			}
		}
	}
	<-ctx.Done()
	s.drain()
	stop()
	servers.Wait()
	hangUp()
	askers.Wait()
	return nil
}

// drain waits until everything accepted is answered, or the time for it is over and nothing runs side
// by side, as answers in parts do.
func (s *Sidecar) drain() {
	for _, p := range s.pools {
		p.drain()
	}
	if s.host != nil { // which loads no more from now on
		for _, p := range s.host.all() {
			p.drain()
		}
	}
	deadline := time.NewTimer(s.cfg.Drain)
	defer deadline.Stop()
	poll := time.NewTicker(drainTick)
	defer poll.Stop()
	for !s.answered() {
		select {
		case <-deadline.C:
			if s.running() > 0 {
				deadline.Reset(drainTick)
				continue
			}
			s.log.Warn("stopped draining with queries unanswered", "after", s.cfg.Drain)
			return
		case <-poll.C:
		}
	}
}

func (s *Sidecar) answered() bool {
	for _, p := range s.all() {
		if !p.answered() {
			return false
		}
	}
	return true
}

// running is how many queries run side by side.
func (s *Sidecar) running() (n int) {
	for _, p := range s.all() {
		for _, stage := range p.pipe.Load().stages {
			n += stage.beside()
		}
	}
	return n
}

// accept serves connections of one listener until ctx ends, and returns when the
// last of them has ended.
func (s *Sidecar) accept(ctx, serving context.Context, ln net.Listener, serve func(context.Context, net.Conn)) {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	slots := make(chan struct{}, maxConns)
	for {
		slots <- struct{}{}
		nc, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Warn("cannot accept a connection", "err", err)
			time.Sleep(10 * time.Millisecond) // out of descriptors: do not spin
			<-slots
			continue
		}
		conns.Go(func() {
			defer func() { <-slots }()
			serve(serving, nc)
		})
	}
}

// profileOf is what a pool takes, as demand reports it.
func (s *Sidecar) profileOf(p *pool) func() serving.LatencyLine {
	if p.host != nil {
		return p.host.profile
	}
	return p.profile
}

// all are the pools, those of versions that a host holds included.
func (s *Sidecar) all() []*pool {
	if s.host == nil {
		return s.pools
	}
	return append(slices.Clone(s.pools), s.host.all()...)
}

// pool finds one by its id on connections with gateways, or nil.
func (s *Sidecar) pool(id uint32) *pool {
	if int(id) < len(s.pools) {
		return s.pools[id]
	}
	if s.host == nil {
		return nil
	}
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	return s.host.pools[id]
}

func (s *Sidecar) hello(token []byte) rpc.Hello {
	return rpc.Hello{Minor: rpc.Minor, Role: rpc.RoleSidecar, Features: rpc.FeatureLZ4 | rpc.FeatureStages | rpc.FeatureHost | rpc.FeatureTensors | rpc.FeatureParts | rpc.FeatureApps | rpc.FeatureMemory, MaxFrame: rpc.MaxFrame, Name: s.cfg.Replica, Token: token, Software: "topsail"}
}

// greet opens the connection of a gateway.
func (s *Sidecar) greet(ctx context.Context, nc net.Conn) (*rpc.Conn, error) {
	var token []byte
	if s.cfg.GatewayToken != nil {
		if token = s.cfg.GatewayToken(); len(token) == 0 { // which would allow every peer
			nc.Close()
			return nil, errors.New("sidecar: the token that gateways must show is empty")
		}
	}
	return rpc.Accept(ctx, nc, s.hello(token), wantRole(rpc.RoleGateway))
}

func wantRole(role rpc.Role) func(rpc.Hello) error {
	return func(h rpc.Hello) error {
		if h.Role != role {
			return fmt.Errorf("rpc: role %d is not accepted on this port", h.Role)
		}
		return nil
	}
}

func (s *Sidecar) serveGateway(ctx context.Context, nc net.Conn) {
	conn, err := s.greet(ctx, nc)
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			level = slog.LevelDebug // a health check that only connects
		}
		s.log.Log(ctx, level, "refused a gateway", "from", nc.RemoteAddr(), "err", err)
		return
	}
	g := newGatewayConn(conn, s)
	s.mu.Lock()
	s.gateways[g] = struct{}{}
	for some := range slices.Chunk(s.all(), announceAtOnce) {
		g.announce(announcements(some)...)
	}
	s.mu.Unlock()
	err = g.run(ctx)
	s.mu.Lock()
	delete(s.gateways, g)
	s.mu.Unlock()
	g.leave()
	s.log.Debug("a gateway disconnected", "from", nc.RemoteAddr(), "err", err)
}

// announceAtOnce keeps announcements within the smallest frame that a gateway may take.
const announceAtOnce = 64

func announcements(pools []*pool) (list []rpc.Announcement) {
	for _, p := range pools {
		list = append(list, p.announcement())
	}
	return list
}

// poolChanged sends the state of a pool to all gateways.
func (s *Sidecar) poolChanged(p *pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.gateways {
		g.announce(p.announcement())
	}
}

// tell sends something to all gateways.
func (s *Sidecar) tell(a rpc.Announcement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.gateways {
		g.announce(a)
	}
}

// forgotten has the connections of gateways forget a pool that is gone.
func (s *Sidecar) forgotten(p *pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.gateways {
		g.forget(p)
	}
}

// serveContainer serves one version 2 container.
func (s *Sidecar) serveContainer(ctx context.Context, nc net.Conn) {
	conn, err := rpc.Accept(ctx, nc, s.hello(s.cfg.ContainerToken), wantRole(rpc.RoleContainer))
	if err != nil {
		s.log.Warn("refused a container", "from", nc.RemoteAddr(), "err", err)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	m := &members{sidecar: s, ctx: ctx, cancel: cancel, turns: batch.NewContainer(), serving: map[uint32]member{}}
	m.session = container.NewSession(conn, container.Events{
		Announced: m.announced,
		Draining:  m.leave,
		Metrics:   m.metrics,
	})
	err = m.session.Run(ctx)
	cancel(err)
	m.batchers.Wait()
	m.leaving.Wait()
	m.release()
	if s.host != nil {
		s.host.left(m)
	}
	loads := m.first == nil && s.host == nil // which may keep a container busy for as long as it likes
	if errors.Is(context.Cause(ctx), container.ErrStalled) && s.cfg.Stalled != nil && !loads {
		s.cfg.Stalled()
	}
	s.log.Info("container disconnected", "err", err)
}
