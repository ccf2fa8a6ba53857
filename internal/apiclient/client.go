package apiclient

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say which server, and how to reach it.
type Options struct {
	Server  string        // URL, such as http://127.0.0.1:1338
	Prefix  string        // of every path there, such as /api/v1; empty for none
	Agent   string        // how the program names itself; empty: topsail
	Key     string        // shown to the server; empty for none. Never in an error or a log
	Keys    func() []byte // instead of Key, for one that is replaced while the client lives
	CAFile  string        // certificates to trust in addition to the system's; empty: none
	HTTP    *http.Client  // instead of one of its own, without a timeout; CAFile does not count then
	Timeout time.Duration // of each call, tries again included; 0 is 30 s
	Next    string        // what to do when the server is unavailable, for the error
}

// Client calls one server. It may be used concurrently.
type Client struct {
	base    *url.URL
	server  string // as people named it
	agent   string
	key     func() []byte
	timeout time.Duration
	next    string
	http    *http.Client
}

const (
	defaultTimeout = 30 * time.Second
	dialTimeout    = 5 * time.Second
	maxHeaderBytes = 1 << 20
)

// New checks the options; it connects to nothing.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.Server)
	if err != nil || !isServer(base) {
		return nil, errors.New("the address of the server must be a URL such as http://127.0.0.1:1338, without a user and a query")
	}
	trust, err := trusted(o.CAFile)
	if err != nil {
		return nil, err
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + o.Prefix
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	own := &http.Client{Transport: transport}
	if o.HTTP != nil {
		own.Transport = o.HTTP.Transport
	}
	// A redirect is an answer: the key is for this server alone.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	key := o.Keys
	if key == nil {
		key = func() []byte { return []byte(o.Key) }
	}
	return &Client{
		base:    base,
		server:  o.Server,
		agent:   cmp.Or(o.Agent, "topsail"),
		key:     key,
		timeout: cmp.Or(o.Timeout, defaultTimeout),
		next:    o.Next,
		http:    own,
	}, nil
}

func isServer(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// trusted is nil for the system's certificates alone.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}
