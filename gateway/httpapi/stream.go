package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

const eventStream = "text/event-stream"

// wantsParts says whether a request asks for its answer in parts, as server-sent events.
func wantsParts(rc *fasthttp.RequestCtx) bool {
	return strings.Contains(string(rc.Conn().(*conn).headers.accept), eventStream)
}

// errPartsOfMany refuses several inputs to be answered in parts.
var errPartsOfMany = &serving.QueryError{Cause: "several inputs cannot be answered in parts: send each in a request of its own"}

// predictParts answers a query in parts: an event for each, and one of type end or error behind them.
func (s *Server) predictParts(queries context.Context, c *fiber.Ctx, p codec.PredictRequest) error {
	if p.Batch != nil {
		return errPartsOfMany
	}
	if err := s.reserveAnswer(c.Context(), p.App, 1); err != nil {
		return err
	}
	return s.parts(queries, c, &p.Query, func(int64) events { return &predictEvents{} }, nil)
}

// events write an answer in parts as a protocol has it. They append to b.
type events interface {
	// Part is one part of the answer.
	Part(b []byte, out *serving.Output) []byte
	// End is behind the last part. begun says that there was one.
	End(b []byte, p *serving.Prediction, begun bool) []byte
}

// parts answers a query in parts, as events that begin makes from the query's id. What goes wrong before
// the first of them has its status, also a prediction without one that does not fit; after it the events
// say so.
func (s *Server) parts(queries context.Context, c *fiber.Ctx, q *serving.Query, begin func(id int64) events, fits func(*serving.Prediction) error) error {
	rc := c.Context()
	client := rc.Conn().(*conn)
	ctx, stop := client.whileThere(queries)
	answer, err := s.core.Stream(q)
	if err != nil {
		stop()
		return err
	}
	first, err := answer.Next(ctx)
	if errors.Is(err, io.EOF) {
		err = nil
		if fits != nil {
			err = fits(answer.Answer())
		}
	}
	if err != nil {
		answer.Close()
		stop()
		return err
	}
	rc.SetContentType(eventStream)
	rc.Response.Header.Set(fiber.HeaderCacheControl, "no-cache")
	rc.Response.Header.Set("X-Accel-Buffering", "no") // proxies pass events on as they come
	client.streaming.Store(true)
	rc.Response.SetBodyStream(&partsBody{ctx: ctx, stop: stop, client: client, answer: answer, first: first, events: begin(answer.Answer().QueryID), log: s.log}, -1)
	return nil
}

// partsBody is an answer in parts as fasthttp reads it: each part when it has come, until the answer has
// ended or the client has left.
type partsBody struct {
	ctx    context.Context // of the request, until the client leaves
	stop   func()
	client *conn
	answer serving.Parts
	first  *serving.Output // nil: the answer has no parts
	events events
	log    *slog.Logger

	event  []byte // was made last; nil: none was
	unread []byte // of that
	ended  bool   // it is the last one
}

// Read implements io.Reader, an event at a time.
func (p *partsBody) Read(b []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("an answer in parts panicked", "panic", v, "stack", string(debug.Stack()))
			n, err = 0, errPanicked
		}
	}()
	if len(p.unread) == 0 && !p.next() {
		return 0, io.EOF
	}
	n = copy(b, p.unread)
	p.unread = p.unread[n:]
	return n, nil
}

// errPanicked breaks the connection off: its client must not take the parts that it has for all.
var errPanicked = errors.New("an answer in parts panicked")

// next makes the next event, and says whether there is one.
func (p *partsBody) next() bool {
	if p.ended {
		return false
	}
	part, answer := p.first, p.answer.Answer()
	if p.event != nil {
		var err error
		switch part, err = p.answer.Next(p.ctx); {
		case err == nil || errors.Is(err, io.EOF):
		case errors.Is(err, errGone):
			return false
		default: // the time of a gateway that stops is over
			part, answer = nil, stopping
		}
	}
	if part != nil {
		p.event = p.events.Part(p.event[:0], part)
	} else {
		p.event = p.events.End(p.event[:0], answer, p.first != nil)
		p.ended = true
	}
	p.unread = p.event
	return true
}

// Close implements io.Closer.
func (p *partsBody) Close() error {
	p.answer.Close()
	p.stop()
	p.client.streaming.Store(false)
	return nil
}

// stopping ends the parts of an answer that a gateway that stops has no time for.
var stopping = &serving.Prediction{Default: true, Cause: serving.Draining, Explanation: "this gateway is stopping: send the query again"}

// writeEventWithin is how long a client may not take an event.
const writeEventWithin = 10 * time.Second

// predictEvents are those of POST /<app>/predict.
type predictEvents struct{}

func (*predictEvents) Part(b []byte, out *serving.Output) []byte {
	b = append(b, "data: "...)
	b = codec.AppendPart(b, out)
	return append(b, "\n\n"...)
}

func (*predictEvents) End(b []byte, p *serving.Prediction, begun bool) []byte {
	if begun && p.Default {
		b = append(b, "event: error\ndata: "...)
		b = codec.AppendError(b, "Answer cut", p.Explanation)
		return append(b, "\n\n"...)
	}
	b = append(b, "event: end\ndata: "...)
	b = codec.AppendPrediction(b, *p)
	return append(b, "\n\n"...)
}
