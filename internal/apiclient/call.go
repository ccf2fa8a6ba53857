package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

// MaxAnswer bounds the answers that are read whole, in bytes.
const MaxAnswer = 64 << 20

const (
	tries     = 4
	firstWait = 100 * time.Millisecond
)

// Request is one call.
type Request struct {
	Method  string     // GET when empty
	Path    []string   // its segments, not escaped
	Query   url.Values // nil: none
	Body    any        // as JSON; nil: none
	Type    string     // of the body; application/json when empty
	Accept  string     // application/json when empty
	IfMatch string     // ETag; empty: none
	Repeat  bool       // the call may be sent again: sent twice it does what it does once
	Content io.Reader  // a body that is not JSON, sent once as it is; its length is Length
	Length  int64
}

// Answer is what the server said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // at most MaxAnswer bytes
}

// Call sends a request and reads its answer within the client's timeout. An answer of
// 400 or more is a *Problem, and none an *Away. GET and what has Repeat is sent again
// after a connection broke or the server said 503.
func (c *Client) Call(ctx context.Context, r Request) (*Answer, error) {
	body, err := encode(r.Body)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	wait := retry.Backoff{First: 2 * firstWait, Most: 8 * firstWait}
	for try := 1; ; try++ {
		answer, err := c.once(limited, r, body)
		if err == nil || !r.retry(err) || try == tries || limited.Err() != nil {
			return answer, c.explain(ctx, err)
		}
		if wait.Sleep(limited); limited.Err() != nil {
			return nil, c.explain(ctx, err)
		}
	}
}

// Get reads a document into v, unless v is nil, and returns it as it came.
func (c *Client) Get(ctx context.Context, v any, query url.Values, path ...string) (json.RawMessage, error) {
	return c.Do(ctx, v, Request{Path: path, Query: query})
}

// Do is Call for answers in JSON; v may be nil.
func (c *Client) Do(ctx context.Context, v any, r Request) (json.RawMessage, error) {
	answer, err := c.Call(ctx, r)
	if err != nil {
		return nil, err
	}
	if v != nil && len(answer.Body) > 0 {
		if err := json.Unmarshal(answer.Body, v); err != nil {
			return nil, fmt.Errorf("%s answered with something that this topsail does not understand (%w): is it the management API of the same release?", c.server, err)
		}
	}
	return answer.Body, nil
}

// Open sends a request and returns its answer, whose body may be read for as long as ctx
// lives and is to be closed. Only the beginning of the answer has the client's timeout.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	reading, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(c.timeout, cancel)
	response, err := c.send(reading, r, nil)
	if onTime := late.Stop(); !onTime {
		if err == nil {
			response.Body.Close()
		}
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, c.explain(ctx, err)
	}
	response.Body = &stream{response.Body, cancel}
	return response, nil
}

// Stream is Open for a request with Content, which takes as long as it takes: only ctx
// ends it.
func (c *Client) Stream(ctx context.Context, r Request) (*http.Response, error) {
	response, err := c.send(ctx, r, nil)
	return response, c.explain(ctx, err)
}

// stream ends its request when it is closed.
type stream struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (s *stream) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}

func (c *Client) once(ctx context.Context, r Request, body []byte) (*Answer, error) {
	response, err := c.send(ctx, r, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if err == nil && len(text) > MaxAnswer {
		return nil, fmt.Errorf("the answer of %s is larger than %d bytes", c.server, MaxAnswer)
	}
	return &Answer{response.StatusCode, response.Header, text}, err
}

// send returns an answer below 400, or a *Problem.
func (c *Client) send(ctx context.Context, r Request, body []byte) (*http.Response, error) {
	request, err := c.request(ctx, r, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		return nil, readProblem(response.StatusCode, response.Body)
	}
	return response, nil
}

func (c *Client) request(ctx context.Context, r Request, body []byte) (*http.Request, error) {
	at, err := c.locate(r.Path, r.Query)
	if err != nil {
		return nil, err
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	content := r.Content
	if content == nil && body != nil {
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, at, content)
	if err != nil {
		return nil, err
	}
	if r.Content != nil {
		request.ContentLength = r.Length
	}
	set := func(header, value, otherwise string) {
		if value == "" {
			value = otherwise
		}
		if value != "" {
			request.Header.Set(header, value)
		}
	}
	if content != nil {
		set("Content-Type", r.Type, "application/json")
	}
	set("Accept", r.Accept, "application/json")
	set("If-Match", r.IfMatch, "")
	set("X-Api-Key", string(c.key()), "")
	set("User-Agent", c.agent, "")
	return request, nil
}

// locate is the URL of a path. A name such as .. would lead elsewhere.
func (c *Client) locate(path []string, query url.Values) (string, error) {
	at := *c.base
	var plain, escaped strings.Builder
	plain.WriteString(at.Path)
	escaped.WriteString(at.EscapedPath())
	for _, segment := range path {
		if segment == "" || segment == "." || segment == ".." {
			return "", &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%q is not a name", segment)}
		}
		plain.WriteString("/" + segment)
		escaped.WriteString("/" + url.PathEscape(segment))
	}
	at.Path, at.RawPath, at.RawQuery = plain.String(), escaped.String(), query.Encode()
	return at.String(), nil
}

// retry says whether a failed request may be sent once more, and whether that may help.
func (r Request) retry(err error) bool {
	if r.Content != nil || r.Method != "" && r.Method != http.MethodGet && !r.Repeat {
		return false
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status == http.StatusServiceUnavailable
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false // it will not be trusted the next time either
	}
	_, broken := errors.AsType[*url.Error](err)
	return broken || errors.Is(err, io.ErrUnexpectedEOF)
}

// explain makes what the network says an *Away; ctx is the caller's.
func (c *Client) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, network := errors.AsType[*url.Error](err)
	if network || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Away{Server: c.server, Next: c.next, Err: err}
	}
	return err
}

func encode(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return text, nil
}
