// Package container holds the sessions of a sidecar with its model containers:
// version 2, where the container dials and announces itself, and version 1,
// where the sidecar dials.
package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// Session is the connection of one version 2 container. It runs one batch at a
// time, whatever number of models the container announced on it, or if the container is
// concurrent, queries side by side.
type Session struct {
	conn   *rpc.Conn
	events Events
	turn   chan struct{} // held by the batch that runs

	mu      sync.Mutex           // guards the following
	open    map[uint64]*exchange // by batch
	batches uint64
	lost    error // why the session ended
}

// exchange is a batch that runs.
type exchange struct {
	batch uint64
	items []*queue.Item
	done  chan error // of capacity 1
}

// Events get what a container says, one call at a time. An error ends the session, and is sent to
// the container.
type Events struct {
	Announced func([]rpc.Announcement) error
	Draining  func()
	Metrics   func([]rpc.Metric)
}

// NewSession makes a session on an accepted connection.
func NewSession(conn *rpc.Conn, events Events) *Session {
	s := &Session{conn: conn, events: events, turn: make(chan struct{}, 1), open: map[uint64]*exchange{}}
	conn.BearSilence(s.silent)
	return s
}

// maxSilence is how long a container may say nothing at all, not even PONG, unless it
// has a batch, which has a limit of its own: a model that holds the lock of its
// interpreter keeps every thread of its process from speaking.
const maxSilence = time.Minute

func (s *Session) silent(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 || d < maxSilence {
		return nil
	}
	return fmt.Errorf("%w: it was silent for %v", ErrStalled, maxSilence)
}

// Run serves the session until ctx ends or the container is gone, and returns why.
func (s *Session) Run(ctx context.Context) error {
	err := s.conn.Run(ctx, s.handle)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: it does not read what it is sent: %w", ErrStalled, err)
	}
	s.mu.Lock()
	s.lost = fmt.Errorf("the container disconnected: %w", err)
	s.mu.Unlock()
	s.finish(s.lost)
	return err
}

func (s *Session) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindReply:
		return s.reply(f)
	case rpc.KindAnnounce:
		list, err := rpc.ParseAnnounce(f.Body)
		if err == nil {
			err = s.events.Announced(list)
		}
		return err
	case rpc.KindMetrics:
		list, err := rpc.ParseMetrics(f.Body)
		if err == nil {
			s.events.Metrics(list)
		}
		return err
	case rpc.KindDrain:
		s.events.Draining()
		return nil
	}
	return rpc.Unexpected(f)
}

// reply hands the answers of a REPLY to the items of the batch that runs.
func (s *Session) reply(f rpc.Frame) error {
	r, err := rpc.ParseReply(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.open[r.Batch]
	if x == nil {
		if r.Batch > 0 && r.Batch <= s.batches {
			return nil // of a batch that was given up
		}
		return &rpc.ProtocolError{Frame: "REPLY", Field: "batch", Why: "was not requested"}
	}
	var a rpc.Answer
	for r.Next(&a) {
		if int(a.Index) >= len(x.items) {
			return &rpc.ProtocolError{Frame: "REPLY", Field: "index", Why: fmt.Sprintf("%d is beyond a batch of %d", a.Index, len(x.items))}
		}
		it := x.items[a.Index]
		if it.Answered() {
			return &rpc.ProtocolError{Frame: "REPLY", Field: "index", Why: fmt.Sprintf("input %d was answered before", a.Index)}
		}
		it.Service, a.Stages = r.Service, nil // the sidecar's own to say
		if a.More && it.Ask.Bits&rpc.AskParts == 0 {
			continue // no parts are wanted: the last entry has the whole
		}
		it.Answer(&a)
	}
	if err := r.Err(); err != nil {
		return err
	}
	if r.End {
		delete(s.open, x.batch)
		x.refuseMissing()
		x.done <- nil
	}
	return nil
}

// refuseMissing fails the items that the container left out. That is its error,
// but no reason to lose it.
func (x *exchange) refuseMissing() {
	left := 0
	for _, it := range x.items {
		if !it.Answered() {
			left++
		}
	}
	if left > 0 {
		message := fmt.Sprintf("the container answered %d of the %d inputs of a batch", len(x.items)-left, len(x.items))
		for _, it := range x.items {
			it.Refuse(rpc.StatusContainer, message)
		}
	}
}

// finish ends all batches that run.
func (s *Session) finish(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.open {
		x.done <- why
	}
	clear(s.open)
}

// end ends one batch, unless it has ended: from here on no answer touches its items.
func (s *Session) end(x *exchange, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[x.batch] == x {
		delete(s.open, x.batch)
		x.done <- why
	}
}

// ErrStalled is the end of a container that hangs: it did not answer a batch in time, or
// says and reads nothing any more.
var ErrStalled = errors.New("the container stalled")

var errUnanswered = fmt.Errorf("%w: it did not answer a batch in time", ErrStalled)

// Runner runs batches of one announced model on this session.
func (s *Session) Runner(model uint32) *Runner { return &Runner{session: s, model: model} }

// Runner is one announced model of a session.
type Runner struct {
	session *Session
	model   uint32
}

// PredictBatch implements batch.Runner. A batch that is larger than the frames
// that the container accepts goes out in parts.
func (r *Runner) PredictBatch(ctx context.Context, items []*queue.Item) error {
	s := r.session
	select {
	case s.turn <- struct{}{}:
	default:
		began := time.Now()
		if !s.await(items) {
			return nil
		}
		var cancel context.CancelFunc
		ctx, cancel = later(ctx, time.Since(began)) // the time of the others does not count against this batch
		defer cancel()
	}
	defer func() { <-s.turn }()
	for part := len(items); len(items) > 0; {
		x, err := s.ask(r.model, items[:part])
		switch {
		case errors.Is(err, rpc.ErrTooLarge) && part > 1:
			part /= 2
			continue
		case errors.Is(err, rpc.ErrTooLarge):
			items[0].Refuse(rpc.StatusBadInput, "the input is larger than the container accepts")
		case err != nil:
			return err
		default:
			if err := s.wait(ctx, x); err != nil {
				return err
			}
		}
		items = items[part:]
		part = min(2*part, len(items))
	}
	return nil
}

// wait returns when a batch has been answered, or will not be.
func (s *Session) wait(ctx context.Context, x *exchange) error {
	select {
	case err := <-x.done:
		return err
	case <-ctx.Done():
		s.end(x, errUnanswered)
		return <-x.done
	}
}

// await waits for the turn while batches of other models run. When the last deadline comes
// first, the items expire: a container that is busy has not stalled.
func (s *Session) await(items []*queue.Item) bool {
	var passed <-chan time.Time
	if last := lastDeadline(items); !last.IsZero() {
		passed = time.After(time.Until(last))
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-passed:
	}
	for _, it := range items {
		it.Refuse(rpc.StatusExpired, "the deadline passed while the container ran other models")
	}
	return false
}

// lastDeadline is zero where an item has none.
func lastDeadline(items []*queue.Item) (last time.Time) {
	for _, it := range items {
		if it.Deadline.IsZero() {
			return time.Time{}
		}
		if it.Deadline.After(last) {
			last = it.Deadline
		}
	}
	return last
}

// later is ctx with a deadline that much later, if it has one.
func later(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(by))
}

// Features are those that the container offers.
func (s *Session) Features() rpc.Features { return s.conn.Peer().Features }

// Hosts says why the container cannot hold versions of other models, or nil.
func (s *Session) Hosts() error {
	if s.conn.Peer().Features&rpc.FeatureHost == 0 {
		return errors.New("the container cannot load other models: it has to be a host, such as `python3 -m topsail host`")
	}
	return nil
}

// Load asks the container to hold a version, which it answers by announcing it.
func (s *Session) Load(v rpc.Load) error {
	if err := s.conn.Send(rpc.KindLoad, 0, rpc.AppendLoad(nil, v)); err != nil {
		return fmt.Errorf("ask the container to load %v: %w", v.Model, err)
	}
	return nil
}

// Unload asks the container to let go of a version by the id that it announced, which it
// answers by announcing that it is gone.
func (s *Session) Unload(id uint32) error {
	if err := s.conn.Send(rpc.KindUnload, 0, rpc.AppendUnload(nil, id)); err != nil {
		return fmt.Errorf("ask the container to unload a version: %w", err)
	}
	return nil
}

// Feedback sends feedback on the model, unless anything waits to be sent to the
// container (rpc.ErrBacklog): a batch never waits for feedback.
func (r *Runner) Feedback(list ...rpc.Feedback) error {
	if err := r.session.conn.SendFeedback(r.model, 0, list...); err != nil {
		return fmt.Errorf("send feedback to the container: %w", err)
	}
	return nil
}

// ask sends the batch and makes it the running one.
func (s *Session) ask(model uint32, items []*queue.Item) (*exchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	s.batches++
	x := &exchange{batch: s.batches, items: items, done: make(chan error, 1)}
	now := time.Now()
	b := s.conn.Begin(rpc.KindPredict)
	b = rpc.AppendPredictHead(b, rpc.PredictHead{Batch: x.batch, Model: model, Count: len(items)})
	for _, it := range items {
		it.Ask.Budget = -1
		if !it.Deadline.IsZero() {
			it.Ask.Budget = max(it.Left(now), 0)
		}
		b = rpc.AppendAsk(b, &it.Ask)
	}
	if err := s.conn.End(b, 0); err != nil {
		return nil, fmt.Errorf("send a batch to the container: %w", err)
	}
	s.open[x.batch] = x
	return x, nil
}
