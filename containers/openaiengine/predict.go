package openaiengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/containers/upstream"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

const (
	maxAnswer = rpc.MaxFrame - 64<<10 // of an answer without parts
	maxRest   = 64 << 10              // that is read after the last event of a stream

	// closeWithin is how long the end of a stream may take after its last event. The connection
	// is used again only if it comes.
	closeWithin = 100 * time.Millisecond
)

var (
	errIdle = errors.New("the engine paused for too long within an answer")
	errCut  = errors.New("the engine ended its answer before it was complete")
)

// Error is the refusal of an engine.
type Error struct {
	Status  int // of HTTP; 0: it came within a stream
	Message string
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return "EngineError: " + e.Message
	}
	return fmt.Sprintf("EngineError: %d %s: %s", e.Status, http.StatusText(e.Status), e.Message)
}

// engineError is the error that an engine wrote, in the forms of OpenAI, TGI and FastAPI, or any other.
func engineError(body []byte, status int) error {
	message := strings.TrimSpace(string(body))
	var said struct{ Error, Message, Detail any }
	if json.Unmarshal(body, &said) == nil {
		if nested, ok := said.Error.(map[string]any); ok && nested["message"] != nil {
			said.Error = nested["message"]
		}
		if found := cmp.Or(said.Error, said.Message, said.Detail); found != nil {
			message = fmt.Sprint(found)
		}
	}
	return &Error{status, message}
}

// predict implements gocontainer.StreamPredict for the one model of an engine.
func (e *engine) predict(ctx context.Context, q *gocontainer.Query, part func(...serving.Value) error) gocontainer.Result {
	name := e.name.Load()
	if name == nil {
		return gocontainer.Result{Err: errors.New("the engine has not said yet which model it has")}
	}
	return (&model{e, *name}).predict(ctx, q, part)
}

// model is what the engine has by a name: its own model, or an adapter.
type model struct {
	*engine
	name string
}

// predict implements gocontainer.StreamPredict.
func (e *model) predict(ctx context.Context, q *gocontainer.Query, part func(...serving.Value) error) gocontainer.Result {
	if e.cfg.ForwardCancel {
		return e.answer(ctx, q, part)
	}
	done := make(chan gocontainer.Result, 1)
	e.running.Go(func() { done <- e.answer(e.lifetime, q, part) })
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		return gocontainer.Result{Err: context.Cause(ctx)}
	}
}

// answer asks the engine.
func (e *model) answer(ctx context.Context, input *gocontainer.Query, part func(...serving.Value) error) gocontainer.Result {
	output, err := e.ask(ctx, input, part)
	if err != nil {
		return gocontainer.Result{Err: err}
	}
	if output == nil {
		return gocontainer.Result{}
	}
	return gocontainer.Result{Output: serving.Value{DType: serving.JSON, Data: output}}
}

func (e *model) ask(ctx context.Context, input *gocontainer.Query, part func(...serving.Value) error) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q, err := newQuery(input)
	if err != nil {
		return nil, err
	}
	stream := input.Parts && q.path != embeddingsPath
	body, err := q.body(e.name, stream)
	if err != nil {
		return nil, err
	}
	response, err := e.server.Post(ctx, q.path, map[string]string{"Content-Type": "application/json"}, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, upstream.Refused(response.StatusCode, engineError(upstream.Refusal(response), response.StatusCode))
	case stream:
		return e.stream(ctx, cancel, q.path, response.Body, part)
	}
	return e.all(response.Body)
}

// all reads an answer without parts.
func (e *engine) all(body io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCut, err)
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("the answer of the engine is larger than %d bytes", maxAnswer)
	}
	var said struct {
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return nil, fmt.Errorf("the answer of the engine is not the JSON of an answer: %w", err)
	}
	e.load.used(said.Usage.Prompt, said.Usage.Completion)
	return b, nil
}

// stream passes on the chunks of an answer, and returns the whole.
func (e *engine) stream(ctx context.Context, cancel context.CancelCauseFunc, path string, body io.Reader, part func(...serving.Value) error) ([]byte, error) {
	var w whole
	defer func() { e.load.used(w.usage()) }()
	idle := time.AfterFunc(e.cfg.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	idle.Stop() // until the first line comes, the query's deadline counts
	events := newEvents(body, func() { idle.Reset(e.cfg.Idle) })
	for {
		data, err := events.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errEventTooLarge):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errCut, err)
		case string(data) == "[DONE]":
			idle.Reset(closeWithin)
			_, _ = io.CopyN(io.Discard, body, maxRest) // the answer is there
			return w.answer(path)
		}
		if err := w.add(data); err != nil {
			return nil, err
		}
		// Without ForwardCancel the answer is read to its end even when the query has ended.
		if err := part(serving.Value{DType: serving.JSON, Data: data}); err != nil && e.cfg.ForwardCancel {
			return nil, err
		}
	}
}
