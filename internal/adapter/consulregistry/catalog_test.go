//go:build servers

package consulregistry

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
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
	require.NoError(t, err)
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
	for _, d := range e.Models {
		ids = append(ids, d.ModelID.String())
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

func (s *service) watch() *watcher { return watching(s.T, s.Registry) }
