package route

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"topsail/rpc"
	"topsail/serving"
)

const (
	dialWithin = 2 * time.Second
	redialMin  = 50 * time.Millisecond
	redialMax  = 2 * time.Second

	// maxInFlight bounds what this gateway has in flight at one replica.
	maxInFlight = 8192
	// reportFresh is how long a replica's report of its queue is believed.
	reportFresh = time.Second
	// latencyDecay is the weight of the past in the moving average of latency.
	latencyDecay = 0.9
)

// Receiver gets the answer to a question, or its failure.
type Receiver interface {
	// Answered is called once per question, on the connection's goroutine: it must
	// not block. The answer's slices are valid until it returns.
	Answered(from *Target, a *rpc.Answer)
}

// replica is one sidecar: the connection to it, and how it has been doing.
type replica struct {
	endpoint serving.Endpoint
	name     string // of this gateway
	log      *slog.Logger
	changed  func() // called when what the replica serves has changed
	health   health

	inFlight atomic.Int64
	wait     atomic.Int64 // reported: what a new query would wait, in nanoseconds
	reported atomic.Int64 // when, in Unix nanoseconds
	latency  atomic.Int64 // moving average of answers, in nanoseconds

	mu      sync.Mutex // guards the following
	conn    *rpc.Conn  // nil while not connected
	models  map[uint32]rpc.Announcement
	pending map[uint64]question
	batches uint64
}

// question is one input that was sent and not yet answered.
type question struct {
	to   Receiver
	from *Target
	sent time.Time
}

func newReplica(e serving.Endpoint, name string, log *slog.Logger, changed func()) *replica {
	return &replica{endpoint: e, name: name, log: log.With("replica", e.Replica), changed: changed, models: map[uint32]rpc.Announcement{}, pending: map[uint64]question{}}
}

// run keeps a connection to the replica until ctx ends.
func (r *replica) run(ctx context.Context) {
	wait := redialMin
	for ctx.Err() == nil {
		connected, err := r.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if connected {
			wait = redialMin
		}
		r.log.Debug("not connected to the replica", "addr", r.endpoint.Addr, "err", err, "retry", wait)
		select {
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		case <-ctx.Done():
		}
		wait = min(2*wait, redialMax)
	}
}

// connect serves one connection, and returns why it ended.
func (r *replica) connect(ctx context.Context) (connected bool, err error) {
	dialer := net.Dialer{Timeout: dialWithin}
	nc, err := dialer.DialContext(ctx, "tcp", r.endpoint.Addr)
	if err != nil {
		return false, err
	}
	conn, err := rpc.Connect(ctx, nc, rpc.Hello{
		Minor: rpc.Minor, Role: rpc.RoleGateway, Features: rpc.FeatureLZ4, MaxFrame: rpc.MaxFrame,
		Name: r.name, Token: r.endpoint.Token, Software: "topsail",
	})
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	r.conn = conn
	r.mu.Unlock()
	err = conn.Run(ctx, r.handle)
	r.disconnected(err)
	return true, err
}

// disconnected fails everything that was in flight.
func (r *replica) disconnected(why error) {
	r.mu.Lock()
	lost := r.pending
	r.conn, r.models, r.pending = nil, map[uint32]rpc.Announcement{}, map[uint64]question{}
	r.mu.Unlock()
	r.changed()
	a := &rpc.Answer{Status: rpc.StatusContainer, Message: fmt.Appendf(nil, "the connection to the replica was lost: %v", why)}
	for _, q := range lost {
		r.inFlight.Add(-1)
		q.to.Answered(q.from, a)
	}
}

func (r *replica) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindReply:
		return r.reply(f)
	case rpc.KindAnnounce:
		return r.announced(f)
	case rpc.KindDrain:
		return nil // the announcements say the same
	}
	return rpc.Unexpected(f)
}

func (r *replica) announced(f rpc.Frame) error {
	list, err := rpc.ParseAnnounce(f.Body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	for _, a := range list {
		if a.State == rpc.StateGone {
			delete(r.models, a.ID)
		} else {
			r.models[a.ID] = a
		}
	}
	r.mu.Unlock()
	r.changed()
	return nil
}

// ask sends one input, and says by what batch it went out.
func (r *replica) ask(t *Target, to Receiver, a *rpc.Ask, in serving.Input) (uint64, *serving.Failure) {
	if r.inFlight.Load() >= maxInFlight {
		return 0, &serving.Failure{Cause: serving.RefusedFull, Message: "too many queries are in flight at the replica"}
	}
	r.mu.Lock()
	conn := r.conn
	if conn == nil {
		r.mu.Unlock()
		return 0, &serving.Failure{Cause: serving.NoReplica, Message: "the replica is not connected"}
	}
	r.batches++
	batch := r.batches
	r.pending[batch] = question{to: to, from: t, sent: time.Now()}
	r.mu.Unlock()
	r.inFlight.Add(1)

	b := rpc.AppendPredictHead(conn.Begin(rpc.KindPredict), rpc.PredictHead{Batch: batch, Model: t.model, Count: 1})
	if err := conn.End(rpc.AppendAskInput(b, a, in), 0); err != nil {
		if _, pending := r.take(batch); pending {
			return 0, &serving.Failure{Cause: serving.ContainerError, Message: err.Error()}
		}
		// The connection ended in between, and its end has answered already.
	}
	return batch, nil
}

// cancel tells the replica that nobody needs the answer to a question any more.
func (r *replica) cancel(batch uint64) {
	r.mu.Lock()
	conn := r.conn
	_, pending := r.pending[batch]
	r.mu.Unlock()
	if pending && conn != nil {
		// A hint: when it cannot be sent, the answer comes and is ignored.
		_ = conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: batch, Index: 0}))
	}
}

// take ends the wait for a question.
func (r *replica) take(batch uint64) (question, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, ok := r.pending[batch]
	if ok {
		delete(r.pending, batch)
		r.inFlight.Add(-1)
	}
	return q, ok
}

// reply hands answers to whoever asked. Questions are sent in batches of one.
func (r *replica) reply(f rpc.Frame) error {
	reply, err := rpc.ParseReply(f)
	if err != nil {
		return err
	}
	now := time.Now()
	r.wait.Store(int64(reply.Wait))
	r.reported.Store(now.UnixNano())
	var a rpc.Answer
	for reply.Next(&a) {
		if a.Index != 0 {
			return &rpc.ProtocolError{Frame: "REPLY", Field: "index", Why: "is beyond a batch of one"}
		}
		if a.More {
			continue
		}
		if q, ok := r.take(reply.Batch); ok {
			r.judge(&a, now.Sub(q.sent), now)
			q.to.Answered(q.from, &a)
		}
	}
	return reply.Err()
}

// judge learns from an answer. A refusal is no failure, and says nothing about
// latency: a replica that fails or refuses fast must not look idle.
func (r *replica) judge(a *rpc.Answer, took time.Duration, now time.Time) {
	switch a.Status {
	case rpc.StatusOK, rpc.StatusModelError, rpc.StatusBadInput:
		r.health.succeed()
		old := r.latency.Load()
		if old == 0 {
			old = int64(took)
		}
		r.latency.Store(int64(latencyDecay*float64(old) + (1-latencyDecay)*float64(took)))
	case rpc.StatusContainer, rpc.StatusNoContainer:
		r.fail(now)
	}
}

func (r *replica) fail(now time.Time) {
	if r.health.fail(now) {
		r.log.Warn("replica ejected after failures in a row; it will be probed", "failures", ejectAfter)
	}
}

// cost is what a new query would wait here, as far as this gateway can tell.
func (r *replica) cost(now time.Time) time.Duration {
	queued := time.Duration(0)
	if now.UnixNano()-r.reported.Load() < int64(reportFresh) {
		queued = time.Duration(r.wait.Load())
	}
	return queued + time.Duration(r.latency.Load()+1)*time.Duration(r.inFlight.Load()+1)
}
