package gocontainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// StreamPredict answers one query, on a goroutine of its own. part sends a part of the answer at
// once; it returns an error when the query was cancelled or the connection is lost, and does nothing
// where no parts are wanted. The result is the whole output; after parts it may be empty, if it was
// not worth collecting. ctx ends when the query is cancelled, the connection is lost or the container
// has to stop: return soon after.
type StreamPredict func(ctx context.Context, q *Query, part func(...serving.Value) error) Result

// ServeStreams is Serve for a model that answers queries side by side, in parts where they are wanted.
func ServeStreams(ctx context.Context, cfg Config, predict StreamPredict) error {
	if cfg.Corrector != nil {
		return errors.New("a model that answers queries side by side cannot learn between them: leave out the Corrector")
	}
	cfg.Concurrency = cmp.Or(cfg.Concurrency, rpc.AnyConcurrency)
	reports := newLearning(nil, cfg.Metrics, cfg.logger())
	return cfg.serve(ctx, func(ctx context.Context, _ *announcer, conn *rpc.Conn) error {
		return newStreams(conn, &cfg, predict, reports).run(ctx)
	})
}

var (
	errCancelled = errors.New("the query was cancelled")
	errLost      = errors.New("the connection to the sidecar has ended")
	errEnded     = errors.New("the query has its answer: no part may follow")
	errNoValue   = errors.New("a part has no value")
)

// streams answers queries side by side, on one connection.
type streams struct {
	replier
	predict StreamPredict // of the one model
	hosting *hosting      // of a host, in place of that; else nil
	reports *learning
	parts   bool          // the sidecar sends queries one by one, and may want parts
	places  chan struct{} // holds one for each query that runs; nil: any number may run

	running sync.WaitGroup
	ctx     context.Context // of the queries; ends with the connection

	mu   sync.Mutex // guards the following
	open map[uint64]*streamBatch
}

// streamBatch is what one PREDICT asked for: one query, or those of an older sidecar.
type streamBatch struct {
	id      uint64
	began   time.Time
	cancels []context.CancelCauseFunc // by index; only of the goroutine that reads

	mu   sync.Mutex // held while a last entry is sent
	left int        // queries without one
}

func newStreams(conn *rpc.Conn, cfg *Config, predict StreamPredict, reports *learning) *streams {
	s := &streams{
		replier: newReplier(conn, cfg), predict: predict, reports: reports,
		parts: conn.Peer().Features&rpc.FeatureParts != 0, open: map[uint64]*streamBatch{},
	}
	if cfg.Concurrency != rpc.AnyConcurrency && !cfg.hosts {
		s.places = make(chan struct{}, cfg.Concurrency)
	}
	return s
}

// run serves until ctx ends or the connection is lost, and returns why.
func (s *streams) run(ctx context.Context) error {
	queries, lost := context.WithCancelCause(context.WithoutCancel(ctx))
	s.ctx = queries
	s.running.Go(s.report)
	if s.hosting != nil {
		s.running.Go(func() { s.hosting.run(queries) })
	}
	err := runConn(ctx, s.conn, serving.MaxStream, s.handle)
	lost(errLost)
	s.running.Wait()
	return err
}

// report sends the metrics while the connection lasts.
func (s *streams) report() {
	for {
		select {
		case <-s.reports.due:
			s.reports.report(s.conn)
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *streams) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindPredict:
		f.Keep()
		return s.begin(f)
	case rpc.KindCancel:
		c, err := rpc.ParseCancel(f.Body)
		if err == nil {
			s.cancel(c)
		}
		return err
	case rpc.KindFeedback:
		return s.reports.take(f)
	case rpc.KindLoad, rpc.KindUnload:
		if s.hosting != nil {
			return s.hosting.take(f)
		}
	}
	return rpc.Unexpected(f)
}

// begin starts the queries of a PREDICT.
func (s *streams) begin(f rpc.Frame) error {
	p, err := rpc.ParsePredict(f)
	if err != nil {
		return err
	}
	b := &streamBatch{id: p.Batch, began: time.Now(), left: p.Count}
	predict := s.predict
	if s.hosting != nil {
		predict = s.hosting.model(p.Model)
	}
	s.mu.Lock()
	s.open[b.id] = b
	s.mu.Unlock()
	var ask rpc.Ask
	for i := uint32(0); p.Next(&ask); i++ {
		query, status, why := newQuery(&ask, false)
		if predict == nil {
			status, why = rpc.StatusUnknownModel, "the version is not loaded"
		}
		if status == rpc.StatusOK && s.parts && !s.enter() {
			status, why = rpc.StatusFull, "the container runs as many queries as it may"
		}
		query.Parts = s.parts && ask.Bits&rpc.AskParts != 0
		ctx, cancel := context.WithCancelCause(s.ctx)
		b.cancels = append(b.cancels, cancel)
		x := &stream{streams: s, predict: predict, batch: b, query: query, index: i, wanted: query.Parts, ctx: ctx}
		s.running.Go(func() {
			defer cancel(nil)
			if status != rpc.StatusOK {
				x.end(&rpc.Answer{Status: status, Message: []byte(why)})
				return
			}
			x.run()
		})
	}
	return p.Err()
}

// enter takes a place for a query, and says whether one was free.
func (s *streams) enter() bool {
	if s.places == nil {
		return true
	}
	select {
	case s.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// await takes a place for a query of a batch, and says whether that came before its end.
func (s *streams) await(ctx context.Context) bool {
	if s.places == nil {
		return true
	}
	select {
	case s.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *streams) leave() {
	if s.places != nil {
		<-s.places
	}
}

// cancel ends queries, unless they have their answers.
func (s *streams) cancel(c rpc.Cancel) {
	s.mu.Lock()
	b := s.open[c.Batch]
	s.mu.Unlock()
	if b == nil {
		return
	}
	for i, cancel := range b.cancels {
		if c.Index == rpc.CancelAll || c.Index == uint32(i) {
			cancel(errCancelled)
		}
	}
}

// stream is one query that runs.
type stream struct {
	streams *streams
	predict StreamPredict
	batch   *streamBatch
	index   uint32
	query   Query
	wanted  bool // are parts; the model may write to query
	ctx     context.Context

	mu      sync.Mutex // guards the following, and is held while an entry is sent
	sent    bool       // a part was
	ended   bool
	payload []byte
}

// run calls the model and sends the last entry.
func (x *stream) run() {
	if !x.streams.parts && !x.streams.await(x.ctx) {
		x.end(&rpc.Answer{Status: rpc.StatusCancelled, Message: []byte(errCancelled.Error())})
		return
	}
	r := x.call()
	x.streams.leave() // first: on the answer, the sidecar sends the next query
	var a rpc.Answer
	switch empty := r.Err == nil && len(r.Outputs) == 0 && r.Output.DType == 0; {
	case x.ctx.Err() != nil:
		a.Status, a.Message = rpc.StatusCancelled, []byte(errCancelled.Error())
	case empty && x.partsSent():
		a.Payload = rpc.AppendPayload(nil)
	case empty:
		a.Status, a.Message = rpc.StatusModelError, []byte("the model returned no output")
	default:
		x.streams.fill(&r, &a, nil)
	}
	x.end(&a)
}

// call calls the model, and turns its panic into an error.
func (x *stream) call() (r Result) {
	defer func() {
		if v := recover(); v != nil {
			r = Result{Err: fmt.Errorf("panic: %v", v)}
		}
	}()
	return x.predict(x.ctx, &x.query, x.part)
}

// part sends a part of the answer.
func (x *stream) part(values ...serving.Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.ended:
		return errEnded
	case x.ctx.Err() != nil:
		return context.Cause(x.ctx)
	case !x.wanted:
		return nil
	case len(values) == 0:
		return errNoValue
	}
	x.payload = rpc.AppendPayload(x.payload[:0], values...)
	err := x.send(x.ctx, &rpc.Answer{More: true, Payload: x.payload}, 0)
	x.sent = x.sent || err == nil
	return err
}

func (x *stream) partsSent() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent
}

// end sends the last entry.
func (x *stream) end(a *rpc.Answer) {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	s, b := x.streams, x.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	var flags rpc.Flags
	if b.left--; b.left == 0 {
		flags = rpc.FlagEnd
		defer s.forget(b)
	}
	err := x.send(s.ctx, a, flags)
	if errors.Is(err, rpc.ErrTooLarge) {
		// A connection that ended takes no reply.
		_ = x.send(s.ctx, &rpc.Answer{Status: rpc.StatusModelError, Message: []byte("the output is larger than the sidecar accepts")}, flags)
	}
}

func (s *streams) forget(b *streamBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, b.id)
}

// backlogPause is how long an entry waits before it is sent again, while the sidecar does not read
// fast enough.
const backlogPause = 10 * time.Millisecond

// send sends one entry. It waits, until ctx ends, while too much waits for the sidecar.
func (x *stream) send(ctx context.Context, a *rpc.Answer, flags rpc.Flags) error {
	conn, head := x.streams.conn, rpc.ReplyHead{Batch: x.batch.id, Count: 1}
	a.Index = x.index
	for {
		head.Service = time.Since(x.batch.began)
		err := conn.End(rpc.AppendAnswer(rpc.AppendReplyHead(conn.Begin(rpc.KindReply), head), a), flags)
		if !errors.Is(err, rpc.ErrBacklog) {
			return err
		}
		if !retry.Sleep(ctx, backlogPause) {
			return context.Cause(ctx)
		}
	}
}
