package apiclient

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
)

func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, err := New(Options{Server: s.URL, Prefix: "/api/v1", Key: "topsail_SECRET", Timeout: 5 * time.Second, Next: "start it"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// served is serve in a bubble.
func served(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	var network pipes.Network
	c, err := New(Options{Server: network.Serve(t, handler), HTTP: network.Client(), Timeout: 5 * time.Second, Next: "start it"})
	require.NoError(t, err)
	return c
}

func TestRequest(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `"%s %s %s %s %s %s %s"`, r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("If-Match"), r.Header.Get("X-Api-Key"), body)
	})
	var got string
	if _, err := c.Do(t.Context(), &got, Request{Method: "PUT", Path: []string{"apps", "a/b ?"}, Query: url.Values{"q": {"x y"}}, Body: 7, IfMatch: "5", Repeat: true}); err != nil {
		t.Fatal(err)
	}
	if want := "PUT /api/v1/apps/a%2Fb%20%3F?q=x+y application/json application/json 5 topsail_SECRET 7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := c.Get(t.Context(), &got, nil, "apps"); err != nil || got != "GET /api/v1/apps  application/json  topsail_SECRET " {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestTriesAgain holds what is sent again after 503 or a broken connection, and what not.
func TestTriesAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		r    Request
		want int32 // requests until it succeeds, or one
	}{
		{"GET", Request{}, 3},
		{"POST that may be repeated", Request{Method: "POST", Repeat: true, Body: 1}, 3},
		{"POST", Request{Method: "POST", Body: 1}, 1},
		{"PUT", Request{Method: "PUT"}, 1},
		{"DELETE", Request{Method: "DELETE"}, 1},
		{"an upload", Request{Method: "POST", Repeat: true, Content: strings.NewReader("x"), Length: 1}, 1},
	} {
		for name, fail := range map[string]http.HandlerFunc{
			"503":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			"broken": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"half": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "9")
				_, _ = io.WriteString(w, "x")
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				c := served(t, func(w http.ResponseWriter, r *http.Request) {
					if asked.Add(1) < 3 {
						fail(w, r)
					}
				})
				_, err := c.Call(t.Context(), test.r)
				if got := asked.Load(); got != test.want || (err == nil) != (test.want == 3) {
					t.Errorf("%s after %s: sent %d times, want %d, error %v", test.name, name, got, test.want, err)
				}
			})
		}
	}
}

func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"detail": "the store is unavailable"}`)
		})
		_, err := c.Call(t.Context(), Request{})
		if p, ok := errors.AsType[*Problem](err); !ok || p.Status != 503 || p.Error() != "the store is unavailable" || asked.Load() != tries {
			t.Errorf("error %v after %d tries, want what the server says after %d", err, asked.Load(), tries)
		}
		c.timeout = firstWait / 2
		began := time.Now()
		if _, err = c.Call(t.Context(), Request{}); err == nil || time.Since(began) != c.timeout {
			t.Errorf("error %v after %v, want one after %v", err, time.Since(began), c.timeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Call(ctx, Request{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that the context ended", err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "half") {
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
		late := func(what string, began time.Time, err error) {
			want := c.server + " does not answer: it timed out; start it"
			if away, ok := errors.AsType[*Away](err); !ok || away.Error() != want || time.Since(began) != c.timeout {
				t.Errorf("%s: error %v after %v, want %q after %v", what, err, time.Since(began), want, c.timeout)
			}
		}
		for _, path := range []string{"none", "half"} {
			began := time.Now()
			_, err := c.Call(t.Context(), Request{Path: []string{path}})
			late(path, began, err)
		}
		began := time.Now()
		_, err := c.Open(t.Context(), Request{Path: []string{"none"}})
		late("open", began, err)
		// What has begun has no deadline but the caller's.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began = time.Now()
		response, err := c.Open(ctx, Request{Path: []string{"half"}})
		require.NoError(t, err)
		defer response.Body.Close()
		if _, err := io.ReadAll(response.Body); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("error %v after %v, want that its context ended after an hour", err, time.Since(began))
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer thief.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	_, err := c.Call(t.Context(), Request{})
	if p, ok := errors.AsType[*Problem](err); !ok || p.Status != http.StatusTemporaryRedirect || elsewhere.Load() > 0 {
		t.Errorf("%v, and %d requests went elsewhere", err, elsewhere.Load())
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for range MaxAnswer>>20 + 1 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if _, err := c.Call(t.Context(), Request{}); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("%v", err)
	}
	if p := readProblem(400, strings.NewReader(`{"detail": "`+strings.Repeat("x", maxProblemBytes)+`"}`)); p.Error() != "the server answers 400 Bad Request" {
		t.Errorf("%.100s", p.Error())
	}
}

func TestListThatDoesNotEnd(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items": [1], "next": "again"}`)
	})
	if _, err := c.List(t.Context(), 0, nil, "x"); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("%v", err)
	}
	if all, err := c.List(t.Context(), 3, nil, "x"); err != nil || len(all) != 3 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestCertificates(t *testing.T) {
	var dialled atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dialled.Add(1)
		}
	}
	s.Config.ErrorLog = log.New(t.Output(), "", 0)
	s.StartTLS()
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	for file, trusts := range map[string]bool{"": false, ca: true} {
		c, err := New(Options{Server: s.URL, CAFile: file})
		require.NoError(t, err)
		dialled.Store(0)
		if _, err := c.Call(t.Context(), Request{}); (err == nil) != trusts || err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("with %q: %v", file, err)
		}
		if got := dialled.Load(); got != 1 {
			t.Errorf("with %q it was dialled %d times, want once", file, got)
		}
		c.Close()
	}
	key := filepath.Join(t.TempDir(), "not.pem")
	require.NoError(t, os.WriteFile(key, []byte("x"), 0o600))
	for _, o := range []Options{{Server: s.URL, CAFile: "/nothing"}, {Server: s.URL, CAFile: key}, {Server: "127.0.0.1:1338"}, {Server: "http://"}, {Server: "http://u:SECRET@h"}, {Server: "http://h?x=1"}, {Server: "file:///x"}, {Server: "http://h\x00"}} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestEventsOfASilentServer(t *testing.T) {
	ended := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "event: hello\ndata: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var got []Event
	err := c.Events(ctx, func(e Event) error { got = append(got, e); cancel(); return nil }, "events")
	if !errors.Is(err, context.Canceled) || len(got) != 1 || got[0].Topic != "hello" || string(got[0].Data) != "1" {
		t.Errorf("%v, %v", err, got)
	}
	<-ended // the request ends with the context
	stop := errors.New("enough")
	c = serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data: 1\n\ndata: 2\n\n") })
	if err := c.Events(t.Context(), func(Event) error { return stop }, "events"); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestReadEvents(t *testing.T) {
	var got []string
	text := "\ufeffignored: x\n: comment\nevent: a\ndata: 1\ndata:2\ndata\n\nevent: nothing\n\nid: 7\ndata: x\r\n\r\ndata: cut off"
	err := ReadEvents(strings.NewReader(text), func(e Event) error { got = append(got, e.Topic+"="+string(e.Data)); return nil })
	if !errors.Is(err, errBroken) || strings.Join(got, "|") != "a=1\n2\n|message=x" {
		t.Errorf("%v, %q", err, got)
	}
}

// FuzzReadEvents holds that nothing that a server sends makes the reader panic, and that
// an event is what its lines say.
func FuzzReadEvents(f *testing.F) {
	for _, text := range []string{"data: 1\n\n", "event: a\ndata: 1\ndata: 2\n\n: x\n", "data\n\n\n", ":\n\r\n", "event\ndata:\n\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		size := 0
		err := ReadEvents(bytes.NewReader(text), func(e Event) error {
			if e.Topic == "" || e.Data == nil || strings.Contains(e.Topic, "\n") {
				t.Fatalf("%q has the event %+v", text, e)
			}
			size += len(e.Data)
			return nil
		})
		if err == nil || size > len(text) {
			t.Fatalf("%q: %v, %d bytes", text, err, size)
		}
	})
}
