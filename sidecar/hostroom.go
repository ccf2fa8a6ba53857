package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

// What follows loads versions and unloads them, within the budget. It is of the goroutine
// of run.

// hold has the container load a version, within the budget.
func (h *host) hold(ctx context.Context, g *hostedModel, v rpc.Load) error {
	if err := h.drop(ctx, g); err != nil { // another definition of the same name
		return err
	}
	home, err := h.container(ctx)
	if err != nil {
		return err
	}
	folder, files, err := h.fetched(ctx, v)
	if err != nil {
		return err
	}
	h.mu.Lock()
	expected := h.ledger.Expect(v.Model, files)
	h.mu.Unlock()
	if err := h.makeRoom(ctx, expected, nil); err != nil {
		return err
	}
	resident, err := h.open(g, v, home)
	if err != nil {
		return err
	}
	said, err := resident.await(ctx, holdWithin, func() error {
		return home.session.Load(rpc.Load{InputType: v.InputType, InputLength: v.InputLength, Model: v.Model, Bundle: v.Bundle, Folder: folder, Signature: v.Signature})
	})
	switch {
	case err != nil:
		home.cancel(err)
		h.close(g, resident)
		return err
	case said.State == rpc.StateGone:
		h.close(g, resident)
		return errors.New(said.Reason)
	}
	h.mu.Lock()
	resident.loaded = true
	h.ledger.Hold(v.Model, int64(said.Memory))
	h.mu.Unlock()
	if err := h.makeRoom(ctx, 0, g); err != nil {
		return errors.Join(err, h.drop(ctx, g))
	}
	resident.settle(time.Now())
	return nil
}

// fetched has the bundle of a version unpacked.
func (h *host) fetched(ctx context.Context, v rpc.Load) (folder string, files int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	folder, files, err = h.fetch(ctx, v)
	if err != nil {
		return "", 0, fmt.Errorf("fetch its bundle: %w", err)
	}
	return folder, files, nil
}

// makeRoom unloads what was asked longest ago until so many bytes more fit. It waits for
// versions that are busy, and leaves keep alone. For what would not fit alone nothing is
// unloaded.
func (h *host) makeRoom(ctx context.Context, more int64, keep *hostedModel) error {
	timeout := time.NewTimer(holdWithin)
	defer timeout.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		h.mu.Lock()
		fits, could, victim := h.ledger.Fits(more), h.ledger.Could(more), h.idlest(keep)
		used, budget, others := h.ledger.Used(), h.ledger.Budget(), h.ledger.Len()
		if !could {
			used = h.ledger.Base()
		}
		if keep != nil {
			others--
		}
		h.mu.Unlock()
		switch {
		case fits:
			return nil
		case could && victim != nil:
			if err := h.drop(ctx, victim); err != nil {
				return err
			}
			h.metrics.unloads.Inc()
		case !could || others <= 0:
			return fmt.Errorf("it needs too much memory: with it the host would use %d MiB of %d; raise host.memory_mb, or give the model replicas of its own",
				(used+more)>>20, budget>>20)
		default:
			select {
			case <-poll.C:
			case <-timeout.C:
				return fmt.Errorf("no memory can be freed: all %d loaded versions are busy", others)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// idlest is the version that was asked longest ago, of those without a query now; nil if
// there is none. h.mu is held.
func (h *host) idlest(keep *hostedModel) (idlest *hostedModel) {
	now := time.Now()
	for _, g := range h.hosted {
		if g != keep && g.resident != nil && g.resident.free(now) && (idlest == nil || g.resident.used.Load() < idlest.resident.used.Load()) {
			idlest = g
		}
	}
	return idlest
}

// drop has the container unload a version, if it is loaded. Gateways are told first, and the
// queries that it has are answered.
func (h *host) drop(ctx context.Context, g *hostedModel) error {
	h.mu.Lock()
	resident := g.resident
	h.mu.Unlock()
	if resident == nil {
		return nil
	}
	resident.leaving.Store(true)
	resident.pool.drain()
	resident.idle(ctx, dropWithin)
	_, err := resident.await(ctx, dropWithin, func() error { return resident.home.session.Unload(resident.id) })
	if err != nil {
		resident.home.cancel(err)
	}
	h.close(g, resident)
	return err
}

// open makes the pool of a version that is about to be loaded, unless the sidecar is to stop.
func (h *host) open(g *hostedModel, v rpc.Load, home *members) (*resident, error) {
	resident := &resident{load: v, home: home, said: make(chan rpc.Announcement, 1)}
	resident.used.Store(time.Now().UnixNano())
	h.mu.Lock()
	h.last++
	id := h.last
	h.mu.Unlock()
	resident.tally = h.sidecar.cfg.Demand.Open(v.Model, nil)
	resident.pool = (&pool{
		id: id, model: hostedVersion(v, h.own.model.Model), limits: h.sidecar.cfg.Limits, metrics: h.own.metrics, changed: h.sidecar.poolChanged, began: time.Now(), resident: resident,
	}).prepare()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own.draining.Load() {
		resident.tally.Close()
		return nil, errStopping
	}
	g.resident = resident
	h.pools[resident.pool.id] = resident.pool
	return resident, nil
}

// close forgets the pool of a version that the container does not hold any more.
func (h *host) close(g *hostedModel, resident *resident) {
	resident.leaving.Store(true)
	resident.pool.drain() // which tells gateways
	h.mu.Lock()
	delete(h.pools, resident.pool.id)
	resident.tally.Close()
	if g.resident == resident {
		g.resident = nil
		h.ledger.Release(g.load.Model)
	}
	h.settle(g)
	h.mu.Unlock()
	h.sidecar.forgotten(resident.pool)
}
