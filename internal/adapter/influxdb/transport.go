package influxdb

import (
	"net"
	"net/http"
	"time"
)

const (
	dialWithin    = 2 * time.Second
	requestWithin = 5 * time.Second // a write or a read, from beginning to end
	maxAnswer     = 64 << 20        // bytes; ten gateways with 200 versions say 10 MB in a minute
)

// transport shows the token, and bounds answers.
type transport struct {
	base  http.RoundTripper
	token func(refused bool) []byte // nil: none
}

func newHTTPClient(cfg Config) *http.Client {
	dialer := &net.Dialer{Timeout: dialWithin}
	return &http.Client{
		Timeout: 2 * requestWithin, // beyond what callers allow themselves
		Transport: &transport{token: cfg.Token, base: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			TLSClientConfig:     cfg.TLS,
			TLSHandshakeTimeout: dialWithin,
			MaxConnsPerHost:     8,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     time.Minute,
			ForceAttemptHTTP2:   true,
		}},
	}
}

// RoundTrip implements http.RoundTripper. A query that is refused is retried if
// there is another token by then; a write is repeated by its writer.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.token == nil {
		return t.send(req, nil)
	}
	token := t.token(false)
	resp, err := t.send(req, token)
	if err != nil || !(resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		return resp, err
	}
	fresh := t.token(true)
	if string(fresh) == string(token) || req.GetBody == nil {
		return resp, nil
	}
	again := req.Clone(req.Context())
	if again.Body, err = req.GetBody(); err != nil {
		return resp, nil
	}
	resp.Body.Close()
	return t.send(again, fresh)
}

func (t *transport) send(req *http.Request, token []byte) (*http.Response, error) {
	if len(token) > 0 {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Token "+string(token))
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}
