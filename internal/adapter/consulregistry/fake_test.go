package consulregistry

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
)

// fake is a Consul in memory that knows the instances of one service, and may lie.
type fake struct {
	*testing.T
	*Registry // that asks it

	mu        sync.Mutex // guards the following
	instances map[string]*api.ServiceEntry
	index     uint64
	lie       http.HandlerFunc // instead of an answer; nil: none
	changed   chan struct{}    // closed at the next change of these
	asked     []asking
}

// asking is a question and when it came.
type asking struct {
	mode, index string
	at          time.Time
}

func newFake(t *testing.T, cfg Config) *fake {
	t.Helper()
	f := &fake{T: t, instances: map[string]*api.ServiceEntry{}, index: 1, changed: make(chan struct{})}
	var network pipes.Network
	client, err := Connect(Options{
		Addr: network.Serve(t, f),
		dial: func(ctx context.Context, _, addr string) (net.Conn, error) { return network.Dial(ctx, addr) },
	})
	require.NoError(t, err)
	cfg.Client, cfg.Service, cfg.Log = client, "service", slog.New(slog.NewTextHandler(t.Output(), nil))
	if f.Registry, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	return f
}

// ServeHTTP answers a question for the instances when there is news, or when its time is over.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f.note(q)
	index, _ := strconv.ParseUint(q.Get("index"), 10, 64)
	wait, _ := time.ParseDuration(q.Get("wait"))
	over := time.After(wait)
	for {
		f.mu.Lock()
		lie, changed, news := f.lie, f.changed, f.index > index
		answer, _ := json.Marshal(slices.Collect(maps.Values(f.instances)))
		now := strconv.FormatUint(f.index, 10)
		f.mu.Unlock()
		if lie != nil {
			lie(w, r)
			return
		}
		if news {
			answered(now, "true", "0", "false", string(answer))(w, r)
			return
		}
		select {
		case <-changed:
		case <-over:
			index = 0
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fake) note(q map[string][]string) {
	mode := "default"
	for _, m := range []string{"stale", "consistent"} {
		if _, is := q[m]; is {
			mode = m
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, asking{mode, strings.Join(q["index"], ""), time.Now()})
}

// questions are those so far.
func (f *fake) questions() []asking {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// change changes what it knows.
func (f *fake) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Put registers an instance as a Nomad job does.
func (f *fake) Put(e serving.Endpoint) {
	host, port, _ := net.SplitHostPort(e.Addr)
	number, _ := strconv.Atoi(port)
	var ids []string
	for _, d := range e.Models {
		ids = append(ids, d.ModelID.String())
	}
	status := api.HealthPassing
	if !e.Ready {
		status = api.HealthCritical
	}
	f.change(func() {
		f.index++
		f.instances[e.Replica] = &api.ServiceEntry{
			Service: &api.AgentService{
				ID: e.Replica, Address: host, Port: number,
				Meta: map[string]string{"replica": e.Replica, "models": strings.Join(ids, ",")},
			},
			Checks: api.HealthChecks{{Status: status}},
		}
	})
}

func (f *fake) Remove(replica string) {
	f.change(func() {
		f.index++
		delete(f.instances, replica)
	})
}

// register puts instances with these names.
func (f *fake) register(replicas ...string) {
	for _, name := range replicas {
		f.Put(serving.Endpoint{Replica: name, Addr: "127.0.0.1:1", Ready: true})
	}
}

// forget loses all data, as a Consul does that is installed anew.
func (f *fake) forget() {
	f.change(func() {
		f.index = 1
		clear(f.instances)
	})
}

// tell tells lies from now on, also to who waits for an answer; nil: the truth.
func (f *fake) tell(lie http.HandlerFunc) {
	f.change(func() { f.lie = lie })
}

// times lies n times, and waits until that is done.
func (f *fake) times(n int, lie http.HandlerFunc) {
	told := make(chan struct{})
	f.tell(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if n--; n == 0 { // a Registry asks one question at a time
				f.tell(nil)
				close(told)
			}
		}()
		lie(w, r)
	})
	<-told
}

// answered is an answer with its headers.
func answered(index, leader, contact, filtered, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-Index", index)
		w.Header().Set("X-Consul-Knownleader", leader)
		w.Header().Set("X-Consul-Lastcontact", contact)
		w.Header().Set("X-Consul-Results-Filtered-By-Acls", filtered)
		_, _ = w.Write([]byte(body))
	}
}

func empty(index, leader, contact, filtered string) http.HandlerFunc {
	return answered(index, leader, contact, filtered, "[]")
}

func fails(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "No cluster leader", http.StatusInternalServerError)
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
