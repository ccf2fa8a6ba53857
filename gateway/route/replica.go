package route

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

const (
	redialMin = 50 * time.Millisecond
	redialMax = 2 * time.Second
	// sweepEvery is how often overdue questions are looked for.
	sweepEvery = time.Second
)

// replica is one sidecar: the connection to it, and how it has been doing.
type replica struct {
	endpoint    serving.Endpoint
	fingerprint uint64 // of its name
	name        string // of this gateway
	dial        func(ctx context.Context, addr string) (net.Conn, error)
	log         *slog.Logger
	changed     func() // called when what the replica serves has changed
	health      health
	load        load
	questions   questions
	answer      rpc.Answer // the one being read; used by the reader of the connection only

	mu      sync.Mutex // guards the following
	token   []byte     // to show when connecting
	conn    *rpc.Conn  // nil while not connected
	models  map[uint32]rpc.Announcement
	refused map[serving.Definition]refusal // versions that it was asked to hold, and lately could not
}

func newReplica(e serving.Endpoint, name string, dial func(context.Context, string) (net.Conn, error), log *slog.Logger, changed func()) *replica {
	r := &replica{
		endpoint: e, fingerprint: fingerprint(e.Replica), token: e.Token, name: name, dial: dial, log: log.With("replica", e.Replica), changed: changed,
		load: load{known: time.Now()}, models: map[uint32]rpc.Announcement{}, refused: map[serving.Definition]refusal{},
	}
	r.questions = questions{load: &r.load, open: map[uint64]question{}}
	return r
}

// run keeps a connection to the replica until ctx ends.
func (r *replica) run(ctx context.Context) {
	wait := retry.Backoff{First: redialMin, Most: redialMax}
	for {
		start := time.Now()
		err := r.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(start) > redialMax {
			wait.Reset() // it worked for a while
		}
		pause := wait.Next()
		r.log.Debug("not connected to the replica", "addr", r.endpoint.Addr, "err", err, "retry", pause)
		if !retry.Sleep(ctx, pause) {
			return
		}
	}
}

// connect serves one connection, and returns why it ended.
func (r *replica) connect(ctx context.Context) error {
	nc, err := r.dial(ctx, r.endpoint.Addr)
	if err != nil {
		return err
	}
	r.mu.Lock()
	token := r.token
	r.mu.Unlock()
	conn, err := rpc.Connect(ctx, nc, rpc.Hello{
		Minor: rpc.Minor, Role: rpc.RoleGateway, Features: rpc.FeatureLZ4 | rpc.FeatureStages | rpc.FeatureHost | rpc.FeatureTensors | rpc.FeatureParts | rpc.FeatureApps, MaxFrame: rpc.MaxFrame,
		Name: r.name, Token: token, Software: "topsail",
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.conn = conn
	r.mu.Unlock()
	sweeping, stop := context.WithCancel(ctx)
	var sweeper sync.WaitGroup
	sweeper.Go(func() { r.sweep(sweeping) })
	err = conn.Run(ctx, r.handle)
	stop()
	sweeper.Wait()
	r.disconnected(err)
	return err
}

// sweep gives up questions that are long overdue: their replies were lost.
func (r *replica) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, q := range r.questions.takeIf(func(q question) bool { return now.After(q.overdue) }) {
				r.fail(now)
				q.fail("the replica did not answer")
			}
		case <-ctx.Done():
			return
		}
	}
}

// disconnected fails everything that was in flight. By then no group has the replica.
func (r *replica) disconnected(why error) {
	r.mu.Lock()
	r.models, r.refused = map[uint32]rpc.Announcement{}, map[serving.Definition]refusal{}
	r.mu.Unlock()
	r.changed()
	r.mu.Lock()
	r.conn = nil
	r.mu.Unlock()
	text := fmt.Sprintf("the connection to the replica was lost: %v", why)
	for _, q := range r.questions.takeIf(func(question) bool { return true }) {
		q.fail(text)
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
	now := time.Now()
	r.mu.Lock()
	for _, a := range list {
		if a.State == rpc.StateGone {
			delete(r.models, a.ID)
			r.refuses(a, now)
			continue
		}
		r.models[a.ID] = a
		delete(r.refused, a.Definition())
	}
	r.mu.Unlock()
	r.changed()
	return nil
}

// refuses notes that the replica cannot hold a version, and forgets what it said so long
// ago that it does not count any more. r.mu is held.
func (r *replica) refuses(a rpc.Announcement, now time.Time) {
	if a.Reason == "" {
		return
	}
	maps.DeleteFunc(r.refused, func(_ serving.Definition, no refusal) bool { return now.Sub(no.at) >= refusedFor })
	if len(r.refused) < maxRefused {
		r.refused[a.Definition()] = refusal{a.Reason, now}
	}
}

// maxRefused bounds what is remembered of a replica's refusals.
const maxRefused = 4096

// keeps takes a new token, and says whether the connection need not be made anew:
// one that stands was let in. Those to follow show the new token.
func (r *replica) keeps(token []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := bytes.Equal(r.token, token)
	r.token = token
	return same || r.conn != nil
}

func (r *replica) connection() *rpc.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// cancel tells the replica that the answer to a question is no longer needed.
func (r *replica) cancel(batch uint64) {
	if conn := r.connection(); conn != nil && r.questions.has(batch) {
		// A hint: when it cannot be sent, the answer comes and is ignored.
		_ = conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: batch, Index: 0}))
	}
}

// reply hands answers to their receivers. Questions are sent in batches of one.
func (r *replica) reply(f rpc.Frame) error {
	reply, err := rpc.ParseReply(f)
	if err != nil {
		return err
	}
	now := time.Now()
	a := &r.answer
	defer func() { *a = rpc.Answer{} }() // holds on to no frame
	for reply.Next(a) {
		if a.Index != 0 {
			return &rpc.ProtocolError{Frame: "REPLY", Field: "index", Why: "is beyond a batch of one"}
		}
		if a.More {
			r.part(&reply, a, now)
			continue
		}
		if q, ok := r.questions.take(reply.Batch); ok {
			r.load.report(q.priority, reply.Wait, now)
			if !q.begun || a.Status != rpc.StatusOK { // else its first part has been judged
				r.judge(a.Status, now.Sub(q.sent), q.priority, q.before, now)
			}
			q.to.Answered(q.from, a, reply.Service, now)
		}
	}
	if reply.Err() == nil && reply.End {
		r.ended(reply.Batch, now)
	}
	return reply.Err()
}

// part hands a part of an answer to its receiver. The first one says how fast the replica is.
func (r *replica) part(reply *rpc.Reply, a *rpc.Answer, now time.Time) {
	q, first, ok := r.questions.part(reply.Batch, now)
	if !ok {
		return
	}
	r.load.report(q.priority, reply.Wait, now)
	if first {
		r.judge(a.Status, now.Sub(q.sent), q.priority, q.before, now)
	}
	q.to.Part(q.from, a)
}

// ended fails a question that the replica says it will never answer.
func (r *replica) ended(batch uint64, now time.Time) {
	if q, ok := r.questions.take(batch); ok {
		r.judge(rpc.StatusContainer, 0, 0, 0, now)
		q.fail("the replica ended the batch without an answer")
	}
}

// judge learns from an answer that took so long, to a question of a priority that so many were
// before. Only an output says something about latency; a refusal, or an error of the model, is not
// a failure of the replica.
func (r *replica) judge(status rpc.Status, took time.Duration, priority int, before float64, now time.Time) {
	switch status {
	case rpc.StatusOK:
		r.health.succeed()
		r.load.output(took, priority, before, now)
		return
	case rpc.StatusCancelled:
		return // by this gateway
	case rpc.StatusModelError, rpc.StatusBadInput, rpc.StatusDropped:
		r.health.succeed()
	case rpc.StatusContainer, rpc.StatusNoContainer:
		r.fail(now)
	case rpc.StatusFull, rpc.StatusLate, rpc.StatusExpired:
		r.load.failure(priority, now) // higher ones go before it, and are not refused for that
		return
	}
	r.load.failure(0, now)
}

func (r *replica) fail(now time.Time) {
	if r.health.fail(now) {
		r.log.Warn("replica ejected after failures in a row; it will be probed", "failures", ejectAfter)
	}
}
