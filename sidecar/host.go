package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/memory"
)

const (
	// maxWanted bounds the versions that wait to be loaded.
	maxWanted = 1024
	// holdWithin is how long each may take: to wait for the container, to fetch a version,
	// to make room for it, and to load it.
	holdWithin = time.Minute
	// sparedFor is how long a version that has just been loaded is not unloaded unless it
	// was asked: the queries that it was loaded for are on their way.
	sparedFor = 50 * time.Millisecond
	// dropWithin is how long a container may take to unload a version.
	dropWithin = 10 * time.Second
	// wantedFor is how long a gateway's word counts that a version is asked. It repeats
	// it every second while queries wait.
	wantedFor = 3 * time.Second
)

// Fetch has the bundle of a version unpacked in the folder that the host's container
// looks in, and says where there, and how many bytes its files have.
type Fetch func(ctx context.Context, v rpc.Load) (folder string, bytes int64, err error)

// host holds versions of other models in the container of one: those that gateways ask
// for, as many as there is memory for. One goroutine loads and unloads.
type host struct {
	sidecar *Sidecar
	own     *pool // of the host itself, which answers no queries
	fetch   Fetch
	metrics *hostMetrics
	log     *slog.Logger
	wanted  chan *hostedModel

	mu     sync.Mutex // guards the following, and hosted models
	ledger *memory.Ledger
	hosted map[serving.ModelID]*hostedModel // that are held, or wait to be
	pools  map[uint32]*pool                 // of those that are held, by their ids on connections with gateways
	last   uint32                           // of these ids
	home   *members                         // the container; nil: none is ready
	came   chan struct{}                    // closed when a container has come
}

func newHost(s *Sidecar, own *pool) *host {
	return &host{
		sidecar: s, own: own, fetch: s.cfg.Fetch, metrics: s.metrics.host(own.model.ModelID, s.cfg.Replica), log: s.log,
		wanted: make(chan *hostedModel, maxWanted), ledger: memory.New(own.model.Host.Bytes()), hosted: map[serving.ModelID]*hostedModel{},
		pools: map[uint32]*pool{}, last: own.id, came: make(chan struct{}),
	}
}

// run loads what is wanted until ctx ends.
func (h *host) run(ctx context.Context) {
	for {
		select {
		case g := <-h.wanted:
			h.serve(ctx, g)
		case <-ctx.Done():
			return
		}
	}
}

// ask is a gateway's word that a version is asked and should be held.
func (h *host) ask(v rpc.Load) {
	if err := h.refuses(v); err != nil {
		h.fail(v, err)
		return
	}
	h.mu.Lock()
	g := h.hosted[v.Model]
	if g == nil {
		g = &hostedModel{}
		h.hosted[v.Model] = g
	}
	coming := g.queued || g.loading && same(g.load, v)
	g.load, g.asked = v, time.Now()
	resident := g.resident
	full := false
	if !coming && (resident == nil || !same(resident.load, v)) {
		select {
		case h.wanted <- g:
			g.queued = true
		default:
			full = true
			h.settle(g)
		}
	}
	h.mu.Unlock()
	switch {
	case full:
		h.fail(v, fmt.Errorf("%d versions are already waiting to be loaded", maxWanted))
	case resident != nil:
		h.sidecar.poolChanged(resident.pool) // the gateway may have missed it
	}
}

// refuses says why a version cannot be held here, or nil.
func (h *host) refuses(v rpc.Load) error {
	switch {
	case h.fetch == nil:
		return errors.New("this sidecar cannot fetch bundles")
	case v.InputType == 0:
		return errors.New("a version needs an input type to be loaded by a host")
	case !serving.IsDigest(v.Bundle):
		return errors.New("a host loads bundles, and the version has none")
	}
	_, err := serving.ParseSignature(v.Signature)
	return err
}

// serve loads a version, unless it is no longer wanted.
func (h *host) serve(ctx context.Context, g *hostedModel) {
	h.mu.Lock()
	g.queued = false
	v, resident := g.load, g.resident
	g.loading = time.Since(g.asked) < wantedFor && (resident == nil || !same(resident.load, v))
	wanted := g.loading
	h.settle(g)
	h.mu.Unlock()
	if !wanted {
		return
	}
	began := time.Now()
	err := h.hold(ctx, g, v)
	h.mu.Lock()
	g.loading = false
	h.settle(g)
	h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.metrics.loaded(time.Since(began), err)
	if err != nil {
		h.log.Warn("cannot load a hosted model", "model", v.Model.String(), "err", err)
		h.fail(v, err)
		return
	}
	h.log.Debug("loaded a hosted model", "model", v.Model.String(), "took", time.Since(began))
}

// settle forgets a hosted model that is neither held, nor loaded, nor waits to be. h.mu is held.
func (h *host) settle(g *hostedModel) {
	if g.resident == nil && !g.loading && !g.queued && h.hosted[g.load.Model] == g {
		delete(h.hosted, g.load.Model)
	}
}

// fail tells gateways why a version cannot be loaded. Its id is that of the host, which is not
// asked.
func (h *host) fail(v rpc.Load, why error) {
	h.mu.Lock()
	h.last++
	a := rpc.Announcement{ID: h.last, State: rpc.StateGone, Model: v.Model, Generation: v.Generation, Reason: why.Error()}
	h.mu.Unlock()
	h.sidecar.tell(a)
}

// poolOf is the pool of a version that the container announces; nil if it was not asked
// to hold it.
func (h *host) poolOf(id serving.ModelID) *pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.hosted[id]; g != nil && g.resident != nil {
		return g.resident.pool
	}
	return nil
}

// all are the pools of the versions that are held.
func (h *host) all() (pools []*pool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pools {
		pools = append(pools, p)
	}
	return pools
}

// memory is how many versions are held, what the container has and its models take, and
// what it may have, in bytes.
func (h *host) memory() (versions int, used, models, budget int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.Len(), h.ledger.Used(), h.ledger.Models(), h.ledger.Budget()
}

// profile is what a batch takes on average of the versions that were asked lately; zero
// while that is unknown.
func (h *host) profile() (line serving.LatencyLine) {
	n := time.Duration(0)
	for _, p := range h.all() {
		if l := p.resident.profile(); l != (serving.LatencyLine{}) {
			line.Base += l.Base
			line.PerInput += l.PerInput
			n++
		}
	}
	if n > 1 {
		line.Base /= n
		line.PerInput /= n
	}
	return line
}
