package consulregistry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/retry"
)

const (
	checkEvery   = 2 * time.Second
	lookEvery    = 2 * time.Second // after what Consul has lost
	deregisterIn = time.Minute     // after which a service that fails its check goes; Consul's least
)

// Service is what Announce registers.
type Service struct {
	Name     string // of the service: lower-case letters, digits and '-'
	ID       string // unique at the agent
	Addr     string // host:port that others can dial
	Meta     map[string]string
	ReadyURL string // asked for health; empty: Addr takes connections
}

// newBackoff is for calls of Consul: queries wait for what it says.
func newBackoff() retry.Backoff {
	return retry.Backoff{First: 100 * time.Millisecond, Most: 2 * time.Second}
}

// Announce keeps a service registered until ctx ends, also with an agent that
// comes late or has lost it, and then deregisters it. It is for processes that
// Nomad does not register; a service that is registered from both sides is there
// twice. It returns an error of the service itself at once.
func (c *Client) Announce(ctx context.Context, s Service) error {
	registration, err := s.registration()
	if err != nil {
		return err
	}
	registering := condition.Condition{
		Log: c.log.With("service", s.Name, "id", s.ID), Begins: "cannot register this process in Consul; retrying", Ends: "this process is registered in Consul again",
	}
	pause := newBackoff()
	for ctx.Err() == nil {
		err := c.keepRegistered(ctx, registration)
		wait := lookEvery
		if err != nil {
			wait = pause.Next()
		} else {
			pause.Reset()
		}
		if ctx.Err() == nil {
			registering.Note(err)
		}
		retry.Sleep(ctx, wait)
	}
	c.deregister(ctx, s.ID)
	return ctx.Err()
}

func (s Service) registration() (*api.AgentServiceRegistration, error) {
	if s.Name == "" || s.ID == "" {
		return nil, errors.New("consul: a service needs a name and an id")
	}
	host, text, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil, fmt.Errorf("consul: address of service %s: %w", s.ID, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("consul: address of service %s: %q has no usable port", s.ID, s.Addr)
	}
	check := &api.AgentServiceCheck{
		CheckID: s.ID + "-ready", Name: "ready", Interval: checkEvery.String(), Timeout: "1s",
		DeregisterCriticalServiceAfter: deregisterIn.String(),
		TLSSkipVerify:                  true, // the agent does not know our CA; it asks on this machine
	}
	if check.HTTP = s.ReadyURL; s.ReadyURL == "" {
		check.TCP = s.Addr
	}
	return &api.AgentServiceRegistration{
		Name: s.Name, ID: s.ID, Address: host, Port: int(port), Meta: s.Meta, Check: check,
	}, nil
}

// keepRegistered registers the service unless the agent has it.
func (c *Client) keepRegistered(ctx context.Context, s *api.AgentServiceRegistration) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, _, err := c.api.Agent().Service(s.ID, (&api.QueryOptions{}).WithContext(ctx))
	if status, ok := errors.AsType[api.StatusError](err); !ok || status.Code != http.StatusNotFound {
		return err
	}
	return c.api.Agent().ServiceRegisterOpts(s, api.ServiceRegisterOpts{}.WithContext(ctx))
}

func (c *Client) deregister(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	if err := c.api.Agent().ServiceDeregisterOpts(id, (&api.QueryOptions{}).WithContext(ctx)); err != nil {
		c.log.Warn("cannot deregister this process from Consul; its check will", "id", id, "error", err)
	}
}
