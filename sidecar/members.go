package sidecar

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"topsail/rpc"
	"topsail/serving"
	"topsail/sidecar/container"
)

// members are the announced models of one container's session, each with a
// batcher while it is ready. Its methods are called by the session, one at a time.
type members struct {
	sidecar  *Sidecar
	session  *container.Session
	ctx      context.Context // of the session; ends the batchers
	cancel   context.CancelCauseFunc
	serving  map[uint32]context.CancelFunc // by announced id
	models   []serving.ModelID
	batchers sync.WaitGroup
}

// announced starts and stops batchers as the container says. A model that this
// sidecar was not made for ends the session.
func (m *members) announced(list []rpc.Announcement) error {
	for _, a := range list {
		if a.State == rpc.StateGone {
			m.stop(a.ID)
			continue
		}
		p, err := m.sidecar.poolFor(a)
		if err != nil {
			return err
		}
		switch {
		case a.State != rpc.StateReady:
			m.stop(a.ID)
		case m.serving[a.ID] == nil:
			m.start(a.ID, p)
		}
	}
	return nil
}

func (m *members) start(id uint32, p *pool) {
	ctx, stop := context.WithCancel(m.ctx)
	m.serving[id] = stop
	if !slices.Contains(m.models, p.model.ModelID) {
		m.models = append(m.models, p.model.ModelID)
	}
	m.sidecar.log.Info("container ready", "model", p.model.ModelID.String())
	m.batchers.Go(func() {
		defer stop()
		if err := p.serve(ctx, m.session.Runner(id), m.sidecar.cfg.Stall); ctx.Err() == nil {
			m.cancel(err) // a container that failed a batch is not trusted with another
		}
	})
}

func (m *members) stop(id uint32) {
	if stop := m.serving[id]; stop != nil {
		stop()
		delete(m.serving, id)
	}
}

// leave takes the container out of use, while its last batch may still be answered.
func (m *members) leave() {
	for id := range m.serving {
		m.stop(id)
	}
}

func (m *members) metrics(list []rpc.Metric) {
	for _, id := range m.models[:min(1, len(m.models))] {
		m.sidecar.metrics.custom.put(metricSource{id, m.sidecar.cfg.Replica}, list)
	}
}

// poolFor finds the pool of an announced model.
func (s *Sidecar) poolFor(a rpc.Announcement) (*pool, error) {
	for _, p := range s.pools {
		if p.model.ModelID != a.Model {
			continue
		}
		if a.InputType != 0 && a.InputType != p.model.InputType {
			return nil, fmt.Errorf("the container announces %v with input type %v, and it is registered with %v", a.Model, a.InputType, p.model.InputType)
		}
		return p, nil
	}
	return nil, fmt.Errorf("the container announces %v, which this sidecar does not serve", a.Model)
}
