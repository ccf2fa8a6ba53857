// Package upstream is an HTTP server that a model container stands before, which answers its queries:
// an inference engine, or a service that others run.
package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
)

// Config says where a server is.
type Config struct {
	URL    string // http or https, with the path that its own begin with, if any
	APIKey string // empty: none
	Log    *slog.Logger
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error) // nil: within 5 s
	// Problem, unless it is nil, is called with why the server is not ready, and with nil when it is.
	Problem func(error)
}

// Server is a server. Its methods may be called at the same time.
type Server struct {
	cfg    Config
	client *http.Client
}

const (
	connectWithin = 5 * time.Second
	maxIdleConns  = 1024
	maxError      = 64 << 10
)

// New is a server at cfg.URL, which it does not call yet.
func New(cfg Config) (*Server, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a server: name one like http://127.0.0.1:8000", cfg.URL)
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: connectWithin}).DialContext
	}
	if cfg.Problem == nil {
		cfg.Problem = func(error) {}
	}
	return &Server{cfg: cfg, client: &http.Client{
		Transport: &http.Transport{
			DialContext:         cfg.Dial,
			TLSHandshakeTimeout: connectWithin,
			MaxIdleConns:        maxIdleConns,
			MaxIdleConnsPerHost: maxIdleConns,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true, // a compressed stream could come in fewer, later parts
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes the connections that are not in use.
func (s *Server) Close() { s.client.CloseIdleConnections() }

// Post sends a body to a path. The body of the response is to be closed.
func (s *Server) Post(ctx context.Context, path string, headers map[string]string, body []byte) (*http.Response, error) {
	response, err := s.do(ctx, http.MethodPost, path, headers, bytes.NewReader(body))
	if err != nil {
		return nil, gocontainer.Unavailable{Why: fmt.Sprintf("the server at %s cannot be reached: %v", s.cfg.URL, err)}
	}
	return response, nil
}

func (s *Server) do(ctx context.Context, method, path string, headers map[string]string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.cfg.URL+path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	// A query may be sent again where a connection that was kept turns out to be closed, which servers do after an error of
	// their own. The empty list says so to net/http, and is not sent.
	r.Header["Idempotency-Key"] = []string{}
	if s.cfg.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+s.cfg.APIKey)
	}
	return s.client.Do(r)
}

// Get is what a path has, up to a number of bytes. What is not answered with 200 is an error.
func (s *Server) Get(ctx context.Context, path string, within time.Duration, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	response, err := s.do(ctx, http.MethodGet, path, nil, http.NoBody)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s%s answered %s", s.cfg.URL, path, response.Status)
	}
	return b, err
}

// Refusal is the beginning of the body of a response that is an error.
func Refusal(response *http.Response) []byte {
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxError)) // the status says enough
	return said
}

// Refused is what a response that is an error means: that the server has too much to do or is not there, which another
// one may not be, or that it does not take the input.
func Refused(status int, why error) error {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return gocontainer.Unavailable{Why: why.Error(), Full: true}
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return gocontainer.Unavailable{Why: why.Error()}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return gocontainer.BadInput(why.Error())
	}
	return why
}
