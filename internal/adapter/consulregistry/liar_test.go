//go:build servers

package consulregistry

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// liar stands before the real Consul, and answers for it when it has a lie.
type liar struct {
	*httptest.Server
	mu  sync.Mutex // guards lie
	lie http.HandlerFunc
}

func newLiar(t *testing.T) *liar {
	l := &liar{}
	truth := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shared.Addr})
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		lie := l.lie
		l.mu.Unlock()
		if lie != nil {
			lie(w, r)
			return
		}
		truth.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { l.CloseClientConnections(); l.Close() })
	return l
}

// tell lies from the next request on, and ends the one that is open.
func (l *liar) tell(lie http.HandlerFunc) {
	l.mu.Lock()
	l.lie = lie
	l.mu.Unlock()
	l.CloseClientConnections()
}

// times lies n times, and lets told know after that.
func (l *liar) times(n int, lie http.HandlerFunc) (told chan struct{}) {
	told = make(chan struct{})
	l.tell(func(w http.ResponseWriter, r *http.Request) {
		lie(w, r)
		if n--; n == 0 { // a Registry asks one question at a time
			l.mu.Lock()
			l.lie = nil
			l.mu.Unlock()
			close(told)
		}
	})
	return told
}

// TestLies: a lie that is told once, or often but not with the leader's word, takes
// nothing from the list.
func TestLies(t *testing.T) {
	t.Parallel()
	const later = "999999999"
	for _, test := range []struct {
		name  string
		times int
		lie   http.HandlerFunc
	}{
		{"an empty list once", 1, empty(later, "true", "0", "false")},
		{"an empty list with an index of the past", 1, empty("1", "true", "0", "false")},
		{"empty lists without a leader", 4, empty(later, "false", "0", "false")},
		{"empty lists of long ago", 4, empty(later, "true", "60000", "false")},
		{"lists that the token's rights have emptied", 4, empty(later, "true", "0", "true")},
		{"null", 1, func(w http.ResponseWriter, r *http.Request) {
			empty(later, "true", "0", "false")(httptest.NewRecorder(), r)
			w.Header().Set("X-Consul-Knownleader", "true")
			w.Write([]byte("null"))
		}},
		{"errors", 4, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "No cluster leader", 500) }},
		{"no JSON", 4, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLiar(t)
			s := open(t, shared.Addr, l.URL, time.Minute)
			all := numbered("r", 3)
			s.register(all...)
			w := s.watch()
			w.until(all...)
			<-l.times(test.times, test.lie)
			s.register("r9")
			lists := w.until(append(all, "r9")...)
			if stays(t, lists, all...); len(lists) > 4 {
				t.Errorf("got lists %v", lists)
			}
		})
	}
}

// TestBlockingQuery: the first question is for the leader, the next wait from the
// index of the last answer, one that went back begins anew, and 0 counts as 1.
func TestBlockingQuery(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards asked
	var asked []string
	answers := []string{"7", "9", "9", "3", "4", "0", "5"}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		mu.Lock()
		defer mu.Unlock()
		mode := "default"
		if q.Has("stale") {
			mode = "stale"
		} else if q.Has("consistent") {
			mode = "consistent"
		}
		asked = append(asked, mode+" "+q.Get("index"))
		if len(asked) > len(answers) {
			if len(asked) == len(answers)+1 {
				close(done)
			}
			w.WriteHeader(500)
			return
		}
		empty(answers[len(asked)-1], "true", "0", "false")(w, r)
	}))
	defer server.Close()
	s := open(t, server.URL, server.URL, time.Minute)
	start := time.Now()
	s.watch()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the watch asks no more")
	}
	mu.Lock()
	defer mu.Unlock()
	want := "consistent |stale 7|stale 9|stale 9|stale |stale 4|stale |stale 5"
	if got := strings.Join(asked[:len(answers)+1], "|"); got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	if took := time.Since(start); took < time.Duration(len(answers))*interval {
		t.Errorf("%d queries in %v", len(answers)+1, took)
	}
}
