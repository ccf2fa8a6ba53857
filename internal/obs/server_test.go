package obs

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func TestOnlyHealthIsOpenWhenTheRestIsProtected(t *testing.T) {
	protect := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Api-Key") != "right" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	status := func(h http.Handler, path, key string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header.Set("X-Api-Key", key)
		h.ServeHTTP(w, r)
		return w.Code
	}
	ready := Health{Ready: func() error { return errors.New("loading") }}
	page := Page{Path: "/streams", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })}
	protected, open := opsHandler(NewRegistry(), ready, protect, page), opsHandler(NewRegistry(), ready, nil, page)
	for path, good := range map[string]int{
		"/health/live": 200, "/health/ready": 503,
		"/metrics": 200, "/streams": 200, "/debug/pprof/": 200, "/debug/pprof/cmdline": 200, "/debug/pprof/symbol": 200,
		"/debug/pprof/goroutine": 200, "/debug/pprof/heap": 200,
	} {
		without := http.StatusUnauthorized
		if strings.HasPrefix(path, "/health/") {
			without = good
		}
		if a, b, c := status(protected, path, ""), status(protected, path, "right"), status(open, path, ""); a != without || b != good || c != good {
			t.Errorf("%s: %d without the key, %d with it, %d unprotected, want %d, %d, %d", path, a, b, c, without, good, good)
		}
	}
	for _, path := range []string{"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1", "/health/../metrics", "//metrics", "/health/live/../../debug/pprof/heap"} {
		if got := status(protected, path, ""); got == 200 {
			t.Errorf("%s is open", path)
		}
	}
}

func TestServeOpsEndsWithItsContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ServeOps(ctx, Listener{Listener: ln}, Health{Ready: func() error { return nil }}, nil) }()
	response, err := http.Get("http://" + ln.Addr().String() + "/health/ready")
	require.NoError(t, err)
	response.Body.Close()
	stop()
	if err := <-done; err != nil || response.StatusCode != 200 {
		t.Errorf("status %d, ended with %v", response.StatusCode, err)
	}
}

func TestStrangersDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	for _, line := range []string{"http: TLS handshake error from 10.0.0.1:1: EOF\n", "http: panic serving 10.0.0.1:1: oh\n"} {
		if n, err := (faults{&log}).Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if log.String() != "http: panic serving 10.0.0.1:1: oh\n" {
		t.Errorf("log: %s", &log)
	}
}

// TestConditionsAreTold with readiness, which they do not change.
func TestConditionsAreTold(t *testing.T) {
	var why error
	h := opsHandler(NewRegistry(), Health{Ready: func() error { return why }, Conditions: func() error {
		return errors.Join(errors.New("the store is full"), errors.New("m:2 has no replica"))
	}}, nil)
	for status, want := range map[int]string{
		200: `{"status":"ok","conditions":["the store is full","m:2 has no replica"]}`,
		503: `{"status":"not ready","reason":"loading","conditions":["the store is full","m:2 has no replica"]}`,
	} {
		if why = nil; status == 503 {
			why = errors.New("loading")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/health/ready", nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != status || got != want {
			t.Errorf("%d %s, want %s", w.Code, got, want)
		}
	}
}
