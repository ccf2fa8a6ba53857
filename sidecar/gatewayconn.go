package sidecar

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// gatewayConn is the connection of one gateway.
type gatewayConn struct {
	conn    *rpc.Conn
	sidecar *Sidecar

	mu     sync.Mutex // guards askers
	askers map[uint32]*asker

	// Of the reader of the connection.
	asked []*pool           // since it last paused
	apps  map[string]string // names of those that ask, so that each is kept once
}

// asker is one gateway asking one pool: where the answers to its items go.
type asker struct {
	conn *rpc.Conn
	pool *pool
}

func newGatewayConn(conn *rpc.Conn, s *Sidecar) *gatewayConn {
	g := &gatewayConn{conn: conn, sidecar: s, askers: map[uint32]*asker{}, apps: map[string]string{}}
	conn.OnPause(g.wake)
	return g
}

// asker is this gateway asking the pool of an id; nil if there is no such pool.
func (g *gatewayConn) asker(id uint32) *asker {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.askers[id]; a != nil {
		return a
	}
	p := g.sidecar.pool(id)
	if p == nil {
		return nil
	}
	a := &asker{conn: g.conn, pool: p}
	g.askers[id] = a
	return a
}

// forget removes a pool that is gone.
func (g *gatewayConn) forget(p *pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.askers, p.id)
}

// run serves the gateway until ctx ends or it is gone, and returns why.
func (g *gatewayConn) run(ctx context.Context) error { return g.conn.Run(ctx, g.handle) }

// announce sends the state of pools to the gateway.
func (g *gatewayConn) announce(list ...rpc.Announcement) {
	// A connection that cannot be told has ended or is about to.
	_ = g.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, list...))
}

func (g *gatewayConn) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindPredict:
		return g.predict(f)
	case rpc.KindCancel:
		return g.cancel(f)
	case rpc.KindFeedback:
		return g.feedback(f)
	case rpc.KindLoad:
		return g.load(f)
	}
	return rpc.Unexpected(f)
}

func (g *gatewayConn) predict(f rpc.Frame) error {
	now := time.Now()
	mine := f.Take()
	p, err := rpc.ParsePredict(f)
	if err != nil {
		return err
	}
	from := g.asker(p.Model)
	var ask rpc.Ask
	for i := uint32(0); p.Next(&ask); i++ {
		if from == nil {
			g.unknown(p.Batch, i)
			continue
		}
		it := &queue.Item{Arrived: now, Class: g.class(&ask), Ask: own(ask, mine), Batch: p.Batch, Index: i, From: from}
		if ask.Budget >= 0 {
			it.Deadline = now.Add(ask.Budget)
		}
		from.pool.submit(it)
	}
	if from != nil && !slices.Contains(g.asked, from.pool) {
		g.asked = append(g.asked, from.pool)
	}
	return p.Err()
}

// Bounds of the names of apps that a connection keeps.
const (
	mostApps    = 1024
	longestName = 255 // a longer one is none
)

// class is that of what the gateway asks.
func (g *gatewayConn) class(ask *rpc.Ask) serving.Class {
	if len(ask.App) == 0 || len(ask.App) > longestName {
		return serving.Class{}
	}
	app, ok := g.apps[string(ask.App)]
	if !ok {
		if len(g.apps) >= mostApps {
			clear(g.apps)
		}
		app = string(ask.App)
		g.apps[app] = app
	}
	c := serving.Class{App: app, Priority: min(int(ask.Priority), serving.LowestPriority), Weight: float64(ask.Weight)}
	if ask.MinShare > 0 { // else it may be no number
		c.MinShare = min(float64(ask.MinShare), serving.MaxMinShare)
	}
	return c
}

// wake has the pools start on what they were asked for: queries that came together can go in one batch.
func (g *gatewayConn) wake() {
	for _, p := range g.asked {
		p.wake()
	}
	clear(g.asked)
	g.asked = g.asked[:0]
}

// own copies what points into the frame, but for the app, unless the frame is ours.
func own(a rpc.Ask, mine bool) rpc.Ask {
	a.App = nil
	if mine {
		return a
	}
	if !a.Apart {
		a.Payload = slices.Clone(a.Payload)
	}
	a.User = slices.Clone(a.User)
	a.Trace = slices.Clone(a.Trace)
	a.Context = slices.Clone(a.Context)
	return a
}

// feedback hands feedback to the model that it is on. There is no answer:
// what is on a model that is not here is dropped in silence.
func (g *gatewayConn) feedback(f rpc.Frame) error {
	model, list, err := rpc.ParseFeedback(f.Body)
	if err != nil {
		return err
	}
	if from := g.asker(model); from != nil {
		from.pool.learn(list)
	}
	return nil
}

// load asks the host for versions to hold.
func (g *gatewayConn) load(f rpc.Frame) error {
	list, err := rpc.ParseLoad(f.Body)
	if err != nil {
		return err
	}
	if g.sidecar.host == nil {
		return rpc.Unexpected(f)
	}
	for _, v := range list {
		g.sidecar.host.ask(v)
	}
	return nil
}

func (g *gatewayConn) unknown(batch uint64, index uint32) {
	a := rpc.Answer{Index: index, Status: rpc.StatusUnknownModel, Message: []byte("this replica does not serve the model")}
	sendAnswer(g.conn, rpc.ReplyHead{Batch: batch, Count: 1}, &a)
}

func (g *gatewayConn) cancel(f rpc.Frame) error {
	c, err := rpc.ParseCancel(f.Body)
	if err == nil {
		g.end(func(it *queue.Item) bool {
			return it.Batch == c.Batch && (it.Index == c.Index || c.Index == rpc.CancelAll)
		})
	}
	return err
}

// leave drops what the gateway, now gone, still has waiting.
func (g *gatewayConn) leave() { g.end(func(*queue.Item) bool { return true }) }

// end cancels those of this gateway's items that match.
func (g *gatewayConn) end(match func(*queue.Item) bool) {
	g.mu.Lock()
	askers := slices.Collect(maps.Values(g.askers))
	g.mu.Unlock()
	for _, from := range askers {
		if from.pool.answered() {
			continue
		}
		from.pool.cancel(func(it *queue.Item) bool { return it.From == from && match(it) })
	}
}

// Answer implements queue.Asker.
func (a *asker) Answer(it *queue.Item, answer *rpc.Answer) {
	a.pool.checkOutputs(answer, !it.Part.IsZero())
	queued, wait := a.pool.load(it.Priority)
	if it.Cut {
		if answer.More {
			return
		}
		*answer = rpc.Answer{Index: answer.Index, Status: rpc.StatusContainer, Message: []byte("the gateway did not read the answer as fast as it came")}
	}
	sent := sendAnswer(a.conn, rpc.ReplyHead{Batch: it.Batch, Queue: queued, Wait: wait, Service: it.Service, Count: 1}, answer)
	if answer.More {
		a.pool.metrics.part(it)
		it.Cut = !sent
	} else {
		a.pool.metrics.answered(answer.Status)
		a.pool.waiting.Add(-1) // at last: once none waits, a stopping sidecar hangs up
	}
}

// sendAnswer sends an answer, or that it cannot be sent. What is lost after that is
// lost with its gateway, or with one that does not read; that gateway answers by
// its own clock.
func sendAnswer(conn *rpc.Conn, head rpc.ReplyHead, answer *rpc.Answer) (sent bool) {
	if answer.Status == rpc.StatusDropped && conn.Peer().Features&rpc.FeatureStages == 0 {
		answer.Status = rpc.StatusModelError // as near as an older gateway comes
	}
	b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), head)
	err := conn.End(rpc.AppendAnswer(b, answer), 0)
	if errors.Is(err, rpc.ErrTooLarge) {
		*answer = rpc.Answer{Index: answer.Index, More: answer.More, Status: rpc.StatusContainer, Message: []byte("the output is larger than the gateway accepts")}
		b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), head)
		_ = conn.End(rpc.AppendAnswer(b, answer), 0)
	}
	return err == nil
}
