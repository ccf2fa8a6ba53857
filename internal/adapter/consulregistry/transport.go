package consulregistry

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxAnswer bounds an answer, in bytes: ten thousand instances are some 10 MB.
const maxAnswer = 32 << 20

// transport bounds answers, and follows a token file: tokens are replaced while
// we run, and Consul answers 403 to the old one.
type transport struct {
	base http.RoundTripper
	file string // empty: the token is fixed

	ahead atomic.Pointer[time.Duration] // of Consul's clock to ours, by its last answer; nil: not known

	mu    sync.Mutex // guards token
	token string
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req, t.current())
	if err != nil || resp.StatusCode != http.StatusForbidden || !t.reread() {
		return resp, err
	}
	again := req.Clone(req.Context())
	if req.Body != nil {
		if req.GetBody == nil {
			return resp, nil // the next request has the new token
		}
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil
		}
	}
	resp.Body.Close()
	return t.send(again, t.current())
}

func (t *transport) send(req *http.Request, token string) (*http.Response, error) {
	if t.file != "" {
		req = req.Clone(req.Context())
		req.Header.Set("X-Consul-Token", token)
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil {
		t.noteClock(resp.Header.Get("Date"))
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// noteClock reads the time of an answer, which is to the second.
func (t *transport) noteClock(date string) {
	if at, err := http.ParseTime(date); err == nil {
		t.ahead.Store(new(time.Until(at.Add(time.Second / 2))))
	}
}

func (t *transport) current() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token
}

// reread says whether the file holds another token now.
func (t *transport) reread() bool {
	if t.file == "" {
		return false
	}
	f, err := os.Open(t.file)
	if err != nil {
		return false // it may be in the middle of being replaced
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	token := strings.TrimSpace(string(text))
	if err != nil || token == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := token != t.token
	t.token = token
	return changed
}
