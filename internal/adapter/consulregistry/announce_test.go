//go:build servers

package consulregistry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestAnnounce registers through an outage in which Consul loses its data.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	server, wipe := own(t)
	health := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer health.Close()
	s := open(t, server.Addr, server.Addr, time.Second)
	w := s.watch()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- s.client.Announce(ctx, Service{
			Name: s.name, ID: "here", Addr: "127.0.0.1:4321", ReadyURL: health.URL,
			Meta: map[string]string{"model": "wine", "version": "1"},
		})
	}()
	w.until("here")
	ready := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		want := serving.Endpoint{Replica: "here", Addr: "127.0.0.1:4321", Ready: true, Models: []serving.Definition{{ModelID: serving.ModelID{Model: "wine", Version: "1"}}}}
		return len(w.last) == 1 && equal(w.last[0], want)
	}
	wait.Until(t, "its check passes", ready)
	server.Kill()
	wipe()
	require.NoError(t, server.Start(t.Context()))
	wait.Until(t, "it is registered again", func() bool {
		services, err := s.agent.Services()
		return err == nil && services["here"] != nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("announce returned %v", err)
	}
	if services, err := s.agent.Services(); err != nil || services["here"] != nil {
		t.Errorf("it is still registered, or %v", err)
	}
}

func TestAnnounceRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for want, service := range map[string]Service{
		"name and an id":  {Addr: "127.0.0.1:1"},
		"no usable port":  {Name: "a", ID: "b", Addr: "127.0.0.1:0"},
		"missing port":    {Name: "a", ID: "b", Addr: "127.0.0.1"},
		"no usable port ": {Name: "a", ID: "b", Addr: "127.0.0.1:99999"},
	} {
		err := connect(t, shared.Addr).Announce(t.Context(), service)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: got %v, want %q", service, err, want)
		}
	}
}
