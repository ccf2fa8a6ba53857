package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/inference"
	"github.com/topsail-serving/topsail/serving"
)

// inferenceHeader is the length of the JSON before binary tensors.
const inferenceHeader = "Inference-Header-Content-Length"

// inferenceRoutes are those of the Open Inference Protocol, version 2. An app is a model there.
func (s *Server) inferenceRoutes(queries context.Context, app *fiber.App) {
	app.Get("/v2", s.plainly(s.serverMetadata))
	app.Get("/v2/health/live", s.plainly(s.live))
	app.Get("/v2/health/ready", s.plainly(s.ready))
	app.Post("/v2/repository/index", s.plainly(s.repositoryIndex))
	app.Post("/v2/repository/models/:app/load", s.plainly(func(c *fiber.Ctx) error { return s.load(queries, c) }))
	app.Post("/v2/repository/models/:app/unload", s.plainly(s.unload))
	app.Get("/v2/models/stats", s.plainly(s.statistics))
	infer := s.plainly(func(c *fiber.Ctx) error { return s.infer(queries, c) })
	for _, model := range []string{"/v2/models/:app", "/v2/models/:app/versions/:version"} {
		app.Get(model, s.plainly(s.modelMetadata))
		app.Get(model+"/config", s.plainly(s.modelConfig))
		app.Get(model+"/stats", s.plainly(s.statistics))
		app.Get(model+"/ready", s.plainly(s.modelReady))
		app.Post(model+"/infer", infer)
	}
}

// plainly makes refusals those of the protocol: an object with one text.
func (s *Server) plainly(handle fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := handle(c)
		if err == nil {
			return nil
		}
		r := s.refusalOf(c.Context(), missing(err))
		sendInferenceError(c.Context(), r.status, r.cause)
		return nil
	}
}

// missing makes an unknown version a thing that is not found: POST /APP/predict answers as Clipper did, with
// what is wrong with the query.
func missing(err error) error {
	if e, ok := errors.AsType[*serving.QueryError](err); ok && e.UnknownVersion {
		return &refusal{fiber.StatusNotFound, "Unknown version", e.Cause}
	}
	return err
}

func sendInferenceError(rc *fasthttp.RequestCtx, status int, cause string) {
	b := codec.AppendString(append(buffer(rc), `{"error":`...), cause)
	send(rc, status, append(b, '}'))
}

// infer answers a request for the predictions of one or several rows.
func (s *Server) infer(queries context.Context, c *fiber.Ctx) error {
	rc := c.Context()
	r, request, err := s.readInfer(c)
	if err != nil {
		return err
	}
	rows, err := request.Queries(serving.Query{
		App: r.app.Name, Priority: max(r.priority, request.Options.Priority), Received: r.received, Timeout: serving.ShorterTimeout(r.timeout, request.Options.Timeout),
		User: request.Options.User, Context: request.Options.Context, Version: strings.Clone(parameter(c, "version")),
	}, r.app, s.config.MaxBatch)
	if err != nil {
		return &refusal{fiber.StatusBadRequest, codec.ErrorClass, err.Error()}
	}
	if err := s.charge(&r, len(rows)); err != nil {
		return err
	}
	predictions, b, err := s.ask(queries, rc, r.app.Name, rows)
	if err != nil {
		return err
	}
	answer, err := inference.NewAnswer(r.app, &request, predictions)
	if _, none := errors.AsType[*inference.NoPrediction](err); err != nil && !none {
		return &refusal{fiber.StatusBadRequest, codec.ErrorClass, err.Error()}
	} else if err != nil {
		return err
	}
	b, header, err := codec.AppendInferAnswer(b, answer, wantedBinary(&request, answer))
	if err != nil {
		return &refusal{fiber.StatusInternalServerError, "Model error", err.Error()}
	}
	if header < len(b) {
		rc.Response.Header.Set(inferenceHeader, strconv.Itoa(header))
	}
	send(rc, fiber.StatusOK, b)
	if header < len(b) {
		rc.Response.Header.SetContentType("application/octet-stream")
	}
	return nil
}

// readInfer reads a request, as all to apps, and what its body says.
func (s *Server) readInfer(c *fiber.Ctx) (r appRequest, request inference.Request, err error) {
	rc := c.Context()
	if r, err = s.receive(c); err != nil {
		return r, request, err
	}
	header := -1
	if text := rc.Request.Header.Peek(inferenceHeader); len(text) > 0 {
		if header, err = strconv.Atoi(string(text)); err != nil || header < 0 {
			return r, request, &refusal{fiber.StatusBadRequest, "Bad request", inferenceHeader + " must be a number of bytes"}
		}
	}
	nc := rc.Conn().(*conn)
	if text := r.body[:jsonOf(r.body, header)]; len(r.body) > smallBody {
		if err := s.makeRoom(nc, len(text), codec.Most(text, r.app)+len(r.body)); err != nil { // binary tensors
			return r, request, err
		}
	}
	request, err = codec.DecodeInfer(r.body, header)
	s.releaseSlot(nc)
	if err == nil && header >= 0 && len(request.Inputs) <= 1 && nc.keepBody() {
		request.Around = r.body
	}
	return r, request, err
}

// jsonOf is how much of a body is JSON, by its header; below 0 is all.
func jsonOf(body []byte, header int) int {
	if header < 0 {
		return len(body)
	}
	return min(header, len(body))
}

// wantedBinary says of each output of an answer whether it is sent behind the JSON.
func wantedBinary(request *inference.Request, a *inference.Answer) []bool {
	binary := make([]bool, len(a.Outputs))
	for i, v := range a.Outputs {
		binary[i] = request.Options.Binary
		if len(request.Outputs) > 0 {
			binary[i] = request.Outputs[i].Binary
		}
		binary[i] = binary[i] || v.DType == serving.Float16 || v.DType == serving.BFloat16 // which JSON does not carry
	}
	return binary
}

// statusOf is the status of a query without an output.
func statusOf(cause serving.Cause) int {
	switch cause {
	case serving.BadInput:
		return fiber.StatusBadRequest
	case serving.MissedSLO:
		return fiber.StatusGatewayTimeout
	case serving.RefusedFull, serving.RefusedLate:
		return fiber.StatusTooManyRequests
	case serving.NoReplica, serving.Draining:
		return fiber.StatusServiceUnavailable
	}
	return fiber.StatusInternalServerError
}

func sendJSON(rc *fasthttp.RequestCtx, status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	send(rc, status, append(buffer(rc), text...))
	return nil
}
