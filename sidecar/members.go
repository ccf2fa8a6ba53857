package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/container"
)

// members are the announced models of one container's session, each with a
// batcher while it is ready. Its methods are called by the session, one at a time.
type members struct {
	sidecar  *Sidecar
	session  *container.Session
	turns    *batch.Container
	ctx      context.Context // of the session; ends the batchers
	cancel   context.CancelCauseFunc
	serving  map[uint32]member // by announced id
	first    *pool             // that was ever served; nil at first
	place    place             // of the container among those of first
	left     bool              // the container drains and gets nothing more
	batchers sync.WaitGroup
	leaving  sync.WaitGroup
}

type member struct {
	stage *stage
	stop  context.CancelFunc
}

// announced starts and stops batchers as the container says. A model that this
// sidecar was not made for ends the session.
func (m *members) announced(list []rpc.Announcement) error {
	if err := m.serve(list); err != nil || m.sidecar.host == nil {
		return err
	}
	return m.sidecar.host.heard(m, list)
}

// serve makes the batchers those of the models that are ready.
func (m *members) serve(list []rpc.Announcement) error {
	for _, a := range list {
		if a.State == rpc.StateGone {
			m.stop(a.ID)
			continue
		}
		p, err := m.sidecar.poolFor(a, m.session.Features())
		if err != nil {
			return err
		}
		s, err := p.stageOf(a.Stage, string(a.Pipeline))
		if err != nil {
			return err
		}
		if a.State != rpc.StateReady || m.serving[a.ID].stage != s {
			m.stop(a.ID) // the id may have meant another model so far
		}
		if a.State == rpc.StateReady && !m.left {
			if err := m.start(a.ID, p, s, a.Concurrency); err != nil {
				return err
			}
		}
	}
	return nil
}

// start serves a stage of p, unless it does already. A stage has one batcher in a
// session, however often it is announced: for more, a container opens more
// connections.
func (m *members) start(id uint32, p *pool, s *stage, concurrency uint32) error {
	for other, member := range m.serving {
		switch {
		case member.stage != s:
		case other == id:
			return nil
		default:
			return fmt.Errorf("the container announces %v as %d and as %d: open one connection for each", p.model.ModelID, other, id)
		}
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.serving[id] = member{s, stop}
	if m.first == nil {
		m.first, m.place = p, p.places.take(s.Name)
	}
	log := m.sidecar.log.With("model", p.model.ModelID.String())
	if s.Name != "" {
		log = log.With("stage", s.Name)
	}
	log.Info("container ready")
	runner := m.session.Runner(id)
	w := worker{Runner: runner, container: m.turns, concurrency: concurrency, stall: m.sidecar.cfg.Stall}
	if concurrency > 0 {
		w.Runner = container.Concurrent{Runner: runner}
	}
	if s.Name == "" { // feedback is on a query's input, which no stage but the first one sees
		learner := p.learners.join(runner.Feedback, p.metrics)
		m.batchers.Go(func() { learner.run(ctx) })
	}
	m.batchers.Go(func() {
		defer stop()
		if err := p.serve(ctx, s, w); !errors.Is(err, context.Canceled) {
			m.cancel(err) // a container that failed a batch is not trusted with another
		}
	})
	return nil
}

func (m *members) stop(id uint32) {
	if member, ok := m.serving[id]; ok {
		member.stop()
		delete(m.serving, id)
	}
}

// errDrained ends the session of a container that has drained.
var errDrained = errors.New("the container has drained")

// leave takes the container out of use, and lets it go once its last batch is
// answered.
func (m *members) leave() {
	if m.left {
		return
	}
	m.left = true
	for id := range m.serving {
		m.stop(id)
	}
	m.leaving.Go(func() {
		m.batchers.Wait()
		m.cancel(errDrained)
	})
}

// metrics takes in what the container counts, under the name of the first model
// that it served.
func (m *members) metrics(list []rpc.Metric) {
	if m.first != nil {
		m.sidecar.metrics.custom.put(metricSource{m.first.model.ModelID, m.sidecar.cfg.Replica, m.place.String()}, list)
	}
}

// release frees the container's place, once the session has ended.
func (m *members) release() {
	if m.first != nil {
		m.first.places.free(m.place)
	}
}

// poolFor finds the pool of a model that a container with these features announces.
func (s *Sidecar) poolFor(a rpc.Announcement, features rpc.Features) (*pool, error) {
	p := s.poolOf(a.Model)
	if p == nil {
		return nil, fmt.Errorf("the container announces %v, which this sidecar does not serve", a.Model)
	}
	switch want, length := p.model.InputType, p.model.InputLength; {
	case p.model.Signature != nil && features&rpc.FeatureTensors == 0:
		return nil, fmt.Errorf("the container of %v knows no signatures, and the version has one: update the container's SDK, or register the version without", a.Model)
	case a.Concurrency > 0 && (features&rpc.FeatureParts == 0 || a.Stage != "" || p.host != nil):
		return nil, fmt.Errorf("the container announces %v with a concurrency, which only containers without stages can have that know parts (feature 16), and no host itself", a.Model)
	case want == serving.Chat && features&rpc.FeatureParts == 0:
		return nil, fmt.Errorf("the container of %v knows no input type chat: update the container's SDK", a.Model)
	case a.InputType != 0 && a.InputType != want:
		return nil, fmt.Errorf("the container announces %v with input type %v, and it is registered with %v", a.Model, a.InputType, want)
	case a.InputLength != 0 && length != 0 && a.InputLength != length:
		return nil, fmt.Errorf("the container announces %v with input length %d, and it is registered with %d", a.Model, a.InputLength, length)
	}
	return p, nil
}

// poolOf is the pool of a model version; nil if there is none.
func (s *Sidecar) poolOf(id serving.ModelID) *pool {
	for _, p := range s.pools {
		if p.model.ModelID == id {
			return p
		}
	}
	if s.host == nil {
		return nil
	}
	return s.host.poolOf(id)
}
