package sidecar

import (
	"context"
	"fmt"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// What follows is between a host and its container.

// container waits for a container that is ready to load.
func (h *host) container(ctx context.Context) (*members, error) {
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	for {
		h.mu.Lock()
		home, came := h.home, h.came
		h.mu.Unlock()
		if home != nil {
			return home, home.session.Hosts()
		}
		select {
		case <-came:
		case <-ctx.Done():
			return nil, errNoContainer
		}
	}
}

// heard takes in what a container has announced, once its batchers are as it says.
func (h *host) heard(m *members, list []rpc.Announcement) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range list {
		if a.Model == h.own.model.ModelID {
			if err := h.joined(m, a); err != nil {
				return err
			}
			continue
		}
		if resident := h.residentOf(m, a); resident != nil {
			if a.State == rpc.StateReady {
				resident.id = a.ID
			}
			resident.say(a)
		}
	}
	return nil
}

// residentOf is what an announcement of a container is about; nil for something that it
// was not asked for. What is gone may be named by its id alone. h.mu is held.
func (h *host) residentOf(m *members, a rpc.Announcement) *resident {
	if g := h.hosted[a.Model]; g != nil && g.resident != nil && g.resident.home == m {
		return g.resident
	}
	if a.Model == (serving.ModelID{}) {
		for _, g := range h.hosted {
			if g.resident != nil && g.resident.home == m && g.resident.loaded && g.resident.id == a.ID {
				return g.resident
			}
		}
	}
	return nil
}

// joined takes in how the host's own container is doing. h.mu is held.
func (h *host) joined(m *members, a rpc.Announcement) error {
	switch {
	case h.home == m:
		h.ledger.Report(int64(a.Memory))
	case h.home != nil:
		return fmt.Errorf("a host has one container, and one of %v is connected already", a.Model)
	case a.State == rpc.StateReady:
		h.home = m
		h.ledger.Start(int64(a.Memory))
		close(h.came)
		h.came = make(chan struct{})
	}
	return nil
}

// left forgets a container that is gone, with all that it held.
func (h *host) left(m *members) {
	h.mu.Lock()
	if h.home == m {
		h.home = nil
	}
	lost := map[*hostedModel]*resident{}
	for _, g := range h.hosted {
		if g.resident != nil && g.resident.home == m {
			lost[g] = g.resident
		}
	}
	h.mu.Unlock()
	for g, resident := range lost {
		resident.say(rpc.Announcement{State: rpc.StateGone, Reason: "the container disconnected"})
		h.close(g, resident)
	}
}
