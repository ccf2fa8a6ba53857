package sidecar

import (
	"context"
	"slices"
	"time"

	"topsail/rpc"
	"topsail/sidecar/queue"
)

// gatewayConn is the connection of one gateway.
type gatewayConn struct {
	conn  *rpc.Conn
	pools map[uint32]*asker
}

// asker is one gateway asking one pool: where the answers to its items go.
type asker struct {
	conn *rpc.Conn
	pool *pool
}

func newGatewayConn(conn *rpc.Conn, pools []*pool) *gatewayConn {
	g := &gatewayConn{conn: conn, pools: make(map[uint32]*asker, len(pools))}
	for _, p := range pools {
		g.pools[p.id] = &asker{conn: conn, pool: p}
	}
	return g
}

// run serves the gateway until ctx ends or it is gone, and returns why.
func (g *gatewayConn) run(ctx context.Context) error { return g.conn.Run(ctx, g.handle) }

// announce tells the gateway how pools are doing.
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
		return nil // for containers that learn; none can be told yet
	}
	return rpc.Unexpected(f)
}

func (g *gatewayConn) predict(f rpc.Frame) error {
	now := time.Now()
	p, err := rpc.ParsePredict(f.Body)
	if err != nil {
		return err
	}
	from := g.pools[p.Model]
	var ask rpc.Ask
	for i := uint32(0); p.Next(&ask); i++ {
		if from == nil {
			g.unknown(p.Batch, i)
			continue
		}
		it := &queue.Item{Arrived: now, Ask: own(ask), Batch: p.Batch, Index: i, From: from}
		if ask.Budget >= 0 {
			it.Deadline = now.Add(ask.Budget)
		}
		from.pool.submit(it)
	}
	return p.Err()
}

// own copies what points into the frame.
func own(a rpc.Ask) rpc.Ask {
	a.Payload = slices.Clone(a.Payload)
	a.User = slices.Clone(a.User)
	a.Trace = slices.Clone(a.Trace)
	return a
}

func (g *gatewayConn) unknown(batch uint64, index uint32) {
	a := rpc.Answer{Index: index, Status: rpc.StatusUnknownModel, Message: []byte("this replica does not serve the model")}
	sendAnswer(g.conn, rpc.ReplyHead{Batch: batch, Count: 1}, &a)
}

func (g *gatewayConn) cancel(f rpc.Frame) error {
	c, err := rpc.ParseCancel(f.Body)
	if err != nil {
		return err
	}
	for _, from := range g.pools {
		for _, it := range from.pool.queue.Remove(func(it *queue.Item) bool {
			return it.From == from && it.Batch == c.Batch && (it.Index == c.Index || c.Index == rpc.CancelAll)
		}) {
			from.pool.metrics.Dropped(rpc.StatusCancelled)
			it.Refuse(rpc.StatusCancelled, "cancelled by the gateway")
		}
	}
	return nil
}

// Answer implements queue.Asker.
func (a *asker) Answer(it *queue.Item, answer *rpc.Answer) {
	if !answer.More {
		a.pool.waiting.Add(-1)
		a.pool.metrics.answered(answer.Status)
	}
	queued, wait := a.pool.load()
	sendAnswer(a.conn, rpc.ReplyHead{Batch: it.Batch, Queue: queued, Wait: wait, Count: 1}, answer)
}

func sendAnswer(conn *rpc.Conn, head rpc.ReplyHead, answer *rpc.Answer) {
	b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), head)
	// What cannot be sent is lost with its gateway, or with one that does not
	// read; that gateway answers by its own clock.
	_ = conn.End(rpc.AppendAnswer(b, answer), 0)
}
