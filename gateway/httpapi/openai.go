package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/topsail-serving/topsail/gateway/openai"
	"github.com/topsail-serving/topsail/serving"
)

// openaiBase is where OpenAI's API is. Clients get it as their base URL.
const openaiBase = "/openai/v1"

// openaiRoutes are those of OpenAI's API. An app is a model there.
func (s *Server) openaiRoutes(queries context.Context, app *fiber.App) {
	app.Get(openaiBase+"/models", s.asOpenAI(s.openaiModels))
	app.Get(openaiBase+"/models/:app", s.asOpenAI(s.openaiModel))
	for _, kind := range []openai.Kind{openai.Chat, openai.Completion} {
		app.Post(openaiBase+kind.Path(), s.asOpenAI(func(c *fiber.Ctx) error { return s.complete(queries, c, kind) }))
	}
	app.Post(openaiBase+openai.Embeddings.Path(), s.asOpenAI(func(c *fiber.Ctx) error { return s.embed(queries, c) }))
	app.All(openaiBase+"/*", s.asOpenAI(func(*fiber.Ctx) error { return errNoOpenAI }))
}

var errNoOpenAI = &refusal{fiber.StatusNotFound, "Not found", "there is nothing at this path for this method: use POST /openai/v1/chat/completions, /completions or /embeddings, or GET /openai/v1/models"}

// asOpenAI makes refusals those of OpenAI's API.
func (s *Server) asOpenAI(handle fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := handle(c)
		if err == nil {
			return nil
		}
		rc := c.Context()
		if e, ok := errors.AsType[*openai.Error](err); ok {
			send(rc, fiber.StatusBadRequest, openai.AppendStatus(buffer(rc), fiber.StatusBadRequest, e.Cause, e.Param))
			return nil
		}
		r := s.refusalOf(rc, missing(err))
		send(rc, r.status, openai.AppendStatus(buffer(rc), r.status, r.cause, ""))
		return nil
	}
}

// openOpenAI reads a request of a kind. Its app is in its body, which is read for callers with a key
// where keys are needed.
func (s *Server) openOpenAI(c *fiber.Ctx, kind openai.Kind) (r appRequest, request *openai.Request, queries []serving.Query, err error) {
	rc := c.Context()
	r.received = rc.Time()
	if _, err = s.asker(rc); err != nil {
		return r, nil, nil, err
	}
	if r.timeout, err = headerTimeout(rc); err != nil {
		return r, nil, nil, err
	}
	nc := rc.Conn().(*conn)
	if nc.unread {
		defer func() { r.received = time.Now() }() // when it has arrived
	}
	if r.body, err = s.body(rc, nc); err != nil {
		return r, nil, nil, err
	}
	if len(r.body) > smallBody && !nc.lease.Take((onTheWay+1)*len(r.body)) {
		return r, nil, nil, errNoMemory
	}
	if len(r.body) > heavyBody {
		if err = s.takeSlot(nc); err != nil {
			return r, nil, nil, err
		}
		defer s.releaseSlot(nc)
	}
	if request, err = openai.Parse(kind, r.body); err != nil {
		return r, nil, nil, err
	}
	name, version, _ := strings.Cut(request.Model, ":")
	if err = s.enter(rc, name, &r); err != nil {
		return r, nil, nil, err
	}
	inputs, err := request.Inputs(r.app, s.config.MaxBatch)
	if err != nil {
		return r, nil, nil, err
	}
	for _, in := range inputs {
		queries = append(queries, serving.Query{
			App: r.app.Name, Priority: r.priority, Input: in, Received: r.received, Timeout: r.timeout, User: request.User, Version: version,
		})
	}
	return r, request, queries, s.charge(&r, len(queries))
}

// complete answers a request for a completion, of a chat or of a text.
func (s *Server) complete(ctx context.Context, c *fiber.Ctx, kind openai.Kind) error {
	r, request, queries, err := s.openOpenAI(c, kind)
	if err != nil {
		return err
	}
	if len(queries) > 1 && request.Stream {
		return &openai.Error{Param: "prompt", Cause: "prompt has several texts: stream each in a request of its own"}
	}
	if len(queries) > 1 {
		return s.completeAll(ctx, c, &r, request, queries)
	}
	if !request.Stream {
		return s.completeWhole(ctx, c, r.app, request, &queries[0])
	}
	begin := func(id int64) events {
		return openai.NewChunks(openai.NewAnswer(request, r.app.Name, id, r.received))
	}
	return s.parts(ctx, c, &queries[0], begin, func(p *serving.Prediction) error { return openai.Fits(r.app, p) })
}

// completeWhole answers at the end of an answer, whose parts have their objectives all the same.
func (s *Server) completeWhole(ctx context.Context, c *fiber.Ctx, app *serving.App, request *openai.Request, q *serving.Query) error {
	rc := c.Context()
	ctx, stop := rc.Conn().(*conn).whileThere(ctx)
	defer stop()
	answer, err := s.core.Stream(q)
	if err != nil {
		return err
	}
	defer answer.Close()
	var text []byte
	parts := 0
	for ; ; parts++ {
		part, err := answer.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if text = append(text, openai.Text(part)...); len(text) > maxCollected {
			return &refusal{fiber.StatusInternalServerError, "Too large", fmt.Sprintf("the answer has more than %d bytes: ask for a stream", maxCollected)}
		}
	}
	p := answer.Answer()
	if p.Default && parts > 0 {
		return openai.Cut(p)
	}
	if err := openai.Fits(app, p); err != nil {
		return err
	}
	b, err := openai.NewAnswer(request, app.Name, p.QueryID, q.Received).Append(buffer(rc), p, string(text), parts)
	if err != nil {
		return err
	}
	send(rc, fiber.StatusOK, b)
	return nil
}

// completeAll answers several prompts, each of which is a query.
func (s *Server) completeAll(ctx context.Context, c *fiber.Ctx, r *appRequest, request *openai.Request, queries []serving.Query) error {
	rc := c.Context()
	ps, b, err := s.ask(ctx, rc, r.app.Name, queries)
	for i := 0; err == nil && i < len(ps); i++ {
		err = openai.Fits(r.app, &ps[i])
	}
	if err == nil {
		b, err = openai.NewAnswer(request, r.app.Name, ps[0].QueryID, r.received).AppendAll(b, ps)
	}
	if err == nil {
		send(rc, fiber.StatusOK, b)
	}
	return err
}

// maxCollected bounds an answer that is collected from its parts.
const maxCollected = 4 << 20

// embed answers a request for embeddings: each of its inputs is a query.
func (s *Server) embed(ctx context.Context, c *fiber.Ctx) error {
	r, request, queries, err := s.openOpenAI(c, openai.Embeddings)
	if err != nil {
		return err
	}
	rc := c.Context()
	ps, b, err := s.ask(ctx, rc, r.app.Name, queries)
	if err != nil {
		return err
	}
	if b, err = openai.NewAnswer(request, r.app.Name, ps[0].QueryID, r.received).AppendEmbeddings(b, ps); err != nil {
		return err
	}
	send(rc, fiber.StatusOK, b)
	return nil
}

// openaiEntry is an app as a model of OpenAI's API.
type openaiEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func entryOf(app *serving.App) openaiEntry { return openaiEntry{app.Name, "model", 0, "topsail"} }

// openaiModels lists the apps that the caller may ask.
func (s *Server) openaiModels(c *fiber.Ctx) error {
	rc := c.Context()
	who, err := s.asker(rc)
	if err != nil {
		return err
	}
	apps, err := s.admission.Visible(who, s.core.App)
	if err != nil {
		return err
	}
	slices.SortFunc(apps, func(a, b *serving.App) int { return strings.Compare(a.Name, b.Name) })
	list := make([]openaiEntry, len(apps))
	for i, app := range apps {
		list[i] = entryOf(app)
	}
	return sendJSON(rc, fiber.StatusOK, map[string]any{"object": "list", "data": list})
}

// openaiModel is one of them.
func (s *Server) openaiModel(c *fiber.Ctx) error {
	var r appRequest
	if err := s.enter(c.Context(), appName(c), &r); err != nil {
		return err
	}
	return sendJSON(c.Context(), fiber.StatusOK, entryOf(r.app))
}
