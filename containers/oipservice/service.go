// Package oipservice is a model container that passes queries on to a server of the Open Inference Protocol
// over REST, such as Triton, KServe, MLServer or OpenVINO, as docs/services.md describes.
package oipservice

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/containers/upstream"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Config says where the server is, and what is asked for there.
type Config struct {
	URL       string      // of the server, without /v2
	Path      string      // of the model, such as /v2/models/resnet
	ReadyPath string      // answers 200 when the model is ready
	APIKey    string      // empty: none
	Problem   func(error) // unless it is nil, called with why the model is not ready, and with nil when it is
	Log       *slog.Logger

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil: as package upstream does
}

const (
	maxMetadata = 1 << 20
	maxAnswer   = rpc.MaxFrame - 64<<10

	// headerLength is how many bytes of a body are JSON; the rest are tensors. A body without it is JSON.
	headerLength = "Inference-Header-Content-Length"
)

// service is the model of a server.
type service struct {
	server   *upstream.Server
	path     string // of the model
	ready    string
	contract contract
	layout   atomic.Pointer[layout] // nil until the server has said what it takes
}

// Serve serves the server's model as that of container, until ctx ends.
func Serve(ctx context.Context, cfg Config, container gocontainer.Config) error {
	s, err := newService(cfg, contract{container.InputType, container.Signature})
	if err != nil {
		return err
	}
	defer s.server.Close()
	container.Ready, container.Log = s.watch, cfg.Log
	return gocontainer.ServeStreams(ctx, container, s.predict)
}

func newService(cfg Config, of contract) (*service, error) {
	server, err := upstream.New(upstream.Config{URL: cfg.URL, APIKey: cfg.APIKey, Log: cfg.Log, Problem: cfg.Problem, Dial: cfg.dial})
	if err != nil {
		return nil, err
	}
	return &service{server: server, path: cfg.Path, ready: cfg.ReadyPath, contract: of}, nil
}

// watch says whether the model is ready, until ctx ends.
func (s *service) watch(ctx context.Context, set func(ready bool)) {
	s.server.Watch(ctx, s.ready, s.learn, set)
}

// learn asks what the server takes, which may be another model than before.
func (s *service) learn(ctx context.Context) error {
	b, err := s.server.Get(ctx, s.path, upstream.ProbeWithin, maxMetadata)
	if err != nil {
		return err
	}
	var model metadata
	if err := json.Unmarshal(b, &model); err != nil {
		return fmt.Errorf("%s is not the metadata of a model: %w", s.path, err)
	}
	var about struct{ Extensions []string }
	if b, err := s.server.Get(ctx, "/v2", upstream.ProbeWithin, maxMetadata); err == nil {
		_ = json.Unmarshal(b, &about) // a server that does not say takes JSON
	}
	l, err := s.contract.layout(&model, about.Extensions)
	if err != nil {
		return err
	}
	s.layout.Store(l)
	return nil
}

// predict implements gocontainer.StreamPredict. The protocol has no parts over REST.
func (s *service) predict(ctx context.Context, q *gocontainer.Query, _ func(...serving.Value) error) gocontainer.Result {
	outputs, err := s.ask(ctx, q)
	return gocontainer.Result{Outputs: outputs, Err: err}
}

func (s *service) ask(ctx context.Context, q *gocontainer.Query) ([]serving.Value, error) {
	l := s.layout.Load()
	if l == nil {
		return nil, gocontainer.Unavailable{Why: "the server has not said yet what the model takes"}
	}
	body, head, err := l.request(q.Inputs)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{"Content-Type": "application/json"}
	if head < len(body) {
		headers = map[string]string{"Content-Type": "application/octet-stream", headerLength: strconv.Itoa(head)}
	}
	response, err := s.server.Post(ctx, s.path+"/infer", headers, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, upstream.Refused(response.StatusCode, refusal(upstream.Refusal(response), response.Status))
	}
	b, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, gocontainer.Unavailable{Why: fmt.Sprintf("the server ended its answer before it was complete: %v", err)}
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("the answer of the server is larger than %d bytes", maxAnswer)
	}
	return l.answer(b, response.Header.Get(headerLength))
}

// refusal is the error that a server wrote, in the form of the protocol or any other.
func refusal(body []byte, status string) error {
	message := strings.TrimSpace(string(body))
	var said struct{ Error, Detail string }
	if json.Unmarshal(body, &said) == nil {
		message = cmp.Or(said.Error, said.Detail, message)
	}
	if len(message) > maxRefusal { // a traceback begins with what called, and ends with why
		message = strings.ToValidUTF8(message[:maxRefusal/4]+" … "+message[len(message)-maxRefusal*3/4:], "")
	}
	return fmt.Errorf("the service answered %s: %s", status, message)
}

// maxRefusal bounds what is passed on of an error, in bytes.
const maxRefusal = 600
