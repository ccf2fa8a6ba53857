// Package container holds the sessions of a sidecar with its model containers:
// version 2, where the container dials and announces itself, and version 1,
// where the sidecar dials.
package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// Session is the connection of one version 2 container.
type Session struct {
	conn   *rpc.Conn
	events Events

	mu      sync.Mutex           // guards the following
	open    map[uint64]*exchange // by batch
	batches uint64
	lost    error // why the session ended
}

// exchange is a batch that runs. One that is larger than the frames that the container accepts goes out in parts.
type exchange struct {
	session *Session
	model   uint32
	ended   func(error)
	rest    []*queue.Item // what has not been sent
	most    int           // of it, in the next part

	// The following is guarded by the session.
	batch  uint64
	items  []*queue.Item // of the part that runs
	gaveUp error         // nothing more is sent
	late   *time.Timer   // of a query that was cancelled
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
	s := &Session{conn: conn, events: events, open: map[uint64]*exchange{}}
	conn.BearSilence(s.silent)
	conn.SendAlone()
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
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, x := range open {
		x.end(s.lost)
	}
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

// reply hands the answers of a REPLY to the items of its batch, and goes on with what follows when that has ended.
func (s *Session) reply(f rpc.Frame) error {
	r, err := rpc.ParseReply(f)
	if err != nil {
		return err
	}
	x, err := s.answer(&r)
	if x != nil {
		x.send()
	}
	return err
}

// answer gives the answers to their items. It returns the exchange whose part has ended with them, if it has.
func (s *Session) answer(r *rpc.Reply) (*exchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.open[r.Batch]
	if x == nil {
		if r.Batch > 0 && r.Batch <= s.batches {
			return nil, nil // of a batch that was given up
		}
		return nil, &rpc.ProtocolError{Frame: "REPLY", Field: "batch", Why: "was not requested"}
	}
	var a rpc.Answer
	for r.Next(&a) {
		if int(a.Index) >= len(x.items) {
			return nil, &rpc.ProtocolError{Frame: "REPLY", Field: "index", Why: fmt.Sprintf("%d is beyond a batch of %d", a.Index, len(x.items))}
		}
		it := x.items[a.Index]
		if it.Answered() {
			return nil, &rpc.ProtocolError{Frame: "REPLY", Field: "index", Why: fmt.Sprintf("input %d was answered before", a.Index)}
		}
		it.Service, a.Stages = r.Service, nil // the sidecar's own to say
		if a.More && it.Ask.Bits&rpc.AskParts == 0 {
			continue // no parts are wanted: the last entry has the whole
		}
		it.Answer(&a)
	}
	if err := r.Err(); err != nil || !r.End {
		return nil, err
	}
	delete(s.open, x.batch)
	x.refuseMissing()
	return x, nil
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

// end ends the exchange with an error, unless it has ended: from here on no answer touches its items. Between two of its
// parts it is for send to end it.
func (x *exchange) end(why error) {
	s := x.session
	s.mu.Lock()
	x.gaveUp = why
	running := s.open[x.batch] == x
	if running {
		delete(s.open, x.batch)
	}
	s.mu.Unlock()
	if running {
		x.finish(why)
	}
}

// finish tells the asker that it has ended.
func (x *exchange) finish(why error) {
	if x.late != nil {
		x.late.Stop()
	}
	x.ended(why)
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

// Begin implements batch.Runner. A batch that is given up has the container count as stalled.
func (r *Runner) Begin(items []*queue.Item, ended func(error)) (giveUp func()) {
	x := r.exchange(items, ended)
	x.send()
	return x.stall
}

func (r *Runner) exchange(items []*queue.Item, ended func(error)) *exchange {
	return &exchange{session: r.session, model: r.model, ended: ended, rest: items, most: len(items)}
}

func (x *exchange) stall() { x.end(errUnanswered) }

// send sends the next part, or ends the exchange when there is none.
func (x *exchange) send() {
	for len(x.rest) > 0 {
		n := min(x.most, len(x.rest))
		err := x.write(x.rest[:n])
		switch {
		case err == nil:
			return
		case errors.Is(err, rpc.ErrTooLarge) && n > 1:
			x.most = n / 2
		case errors.Is(err, rpc.ErrTooLarge):
			x.rest[0].Refuse(rpc.StatusBadInput, "the input is larger than the container accepts")
			x.rest, x.most = x.rest[1:], 2
		default:
			x.finish(err)
			return
		}
	}
	x.finish(nil)
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

// write writes the frame of a part, which runs from then on.
func (x *exchange) write(items []*queue.Item) error {
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.lost, x.gaveUp); err != nil {
		return err
	}
	now := time.Now()
	b := rpc.AppendPredictHead(s.conn.Begin(rpc.KindPredict), rpc.PredictHead{Batch: s.batches + 1, Model: x.model, Count: len(items)})
	for _, it := range items {
		it.Ask.Budget = -1
		if !it.Deadline.IsZero() {
			it.Ask.Budget = max(it.Left(now), 0)
		}
		b = s.conn.AppendAsk(b, &it.Ask)
	}
	if err := s.conn.End(b, 0); err != nil {
		return fmt.Errorf("send a batch to the container: %w", err)
	}
	s.batches++
	x.batch, x.items, x.rest, x.most = s.batches, items, x.rest[len(items):], 2*len(items)
	s.open[x.batch] = x
	return nil
}
