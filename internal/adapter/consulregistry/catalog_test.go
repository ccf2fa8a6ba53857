//go:build servers

package consulregistry

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
)

// service is one that a test registers instances of, and watches.
type service struct {
	*Registry
	*testing.T
	agent *api.Agent
	name  string
}

// open registers at one address and watches at another, which may be the same.
func open(t *testing.T, agent, watched string, hold time.Duration) *service {
	t.Helper()
	name := fresh(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := Open(Config{Client: connect(t, watched), Service: name, Hold: hold, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return &service{r, t, connect(t, agent).api.Agent(), name}
}

// Put registers an instance as a Nomad job does.
func (s *service) Put(e serving.Endpoint) {
	host, port, _ := net.SplitHostPort(e.Addr)
	number, _ := strconv.Atoi(port)
	registration := &api.AgentServiceRegistration{
		Name: s.name, ID: s.name + e.Replica, Address: host, Port: number,
		Meta: map[string]string{"replica": e.Replica},
	}
	var ids []string
	for _, id := range e.Models {
		ids = append(ids, id.String())
	}
	registration.Meta["models"] = strings.Join(ids, ",")
	if !e.Ready {
		registration.Check = &api.AgentServiceCheck{TTL: "1h", Status: api.HealthCritical}
	}
	opt := api.ServiceRegisterOpts{ReplaceExistingChecks: true}
	if err := s.agent.ServiceRegisterOpts(registration, opt); err != nil {
		s.Error("register:", err)
	}
}

func (s *service) Remove(replica string) {
	err := s.agent.ServiceDeregister(s.name + replica)
	if err != nil && !strings.Contains(err.Error(), "Unknown service") {
		s.Error("deregister:", err)
	}
}

// register puts instances with these names.
func (s *service) register(replicas ...string) {
	for _, name := range replicas {
		s.Put(serving.Endpoint{Replica: name, Addr: "127.0.0.1:1", Ready: true})
	}
}

// watcher has seen the lists of a watch.
type watcher struct {
	*testing.T
	mu    sync.Mutex // guards the following
	lists [][]string
	last  []serving.Endpoint
	grown chan struct{} // closed at the next list
}

// watch watches until the test ends.
func (s *service) watch() *watcher {
	w := &watcher{T: s.T, grown: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Watch(ctx, w.update) }()
	s.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watcher) update(list []serving.Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, e := range list {
		names = append(names, e.Replica)
	}
	w.lists, w.last = append(w.lists, names), list
	close(w.grown)
	w.grown = make(chan struct{})
}

// until waits for a list of these replicas, and returns all lists up to it.
func (w *watcher) until(replicas ...string) [][]string {
	w.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		lists, grown := w.lists, w.grown
		w.mu.Unlock()
		if n := len(lists); n > 0 && slices.Equal(lists[n-1], replicas) {
			return lists
		}
		select {
		case <-grown:
		case <-deadline:
			w.Fatalf("got lists %v, want %v at last", lists, replicas)
		}
	}
}

// stays wants no list to lack one of these replicas, from the first that has all.
func stays(t *testing.T, lists [][]string, replicas ...string) {
	t.Helper()
	seen := false
	for _, list := range lists {
		has := !slices.ContainsFunc(replicas, func(name string) bool { return !slices.Contains(list, name) })
		if seen && !has {
			t.Fatalf("the list shrank to %v", list)
		}
		seen = seen || has
	}
	if !seen {
		t.Fatalf("no list of %v has %v", lists, replicas)
	}
}

func numbered(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}
