//go:build system

package e2e

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
)

// Everything is replaced under load, one thing after the other, and no query is
// refused or gets the default.
func TestNothingIsLostWhenEverythingIsReplaced(t *testing.T) {
	old, next := testca.New(t, "old"), testca.New(t, "next")
	s := newSecured(t, old, 5*time.Second)
	stop := s.replica("m/0")
	s.connected(1)
	parties := []*party{s.gateway, s.sidecar, s.container, s.client}

	var key atomic.Value
	key.Store(firstKey)
	var load sync.WaitGroup
	var asked atomic.Int64
	done := make(chan struct{})
	client := s.client.http()
	for range 2 {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := s.ask(client, key.Load().(string)); err != nil {
					t.Error(err)
					return
				}
				asked.Add(1)
			}
		})
	}

	// The authority: both, then the new one's certificates, then that one alone.
	all := func(file string, do func(*party)) {
		t.Helper()
		s.client.reread(file, func() {
			s.gateway.reread(file, func() {
				for _, p := range parties {
					do(p)
				}
			})
		})
	}
	all("ca.pem", func(p *party) { p.trust(old, next) })
	all("cert.pem", func(p *party) { p.certify(next) })
	all("ca.pem", func(p *party) { p.trust(next) })

	// The keys of clients: both, then the new one alone.
	s.gateway.reread("keys", func() { s.gateway.write("keys", firstKey+"\n"+secondKey) })
	key.Store(secondKey)
	before := asked.Load()
	wait.Until(t, "more answers", func() bool { return asked.Load() > before+10 }) // what was on its way
	s.gateway.reread("keys", func() { s.gateway.write("keys", secondKey) })

	// The token: the standing connection stays, and a new replica wants the new one.
	s.gateway.write("token", "second-token")
	s.sidecar.write("token", "second-token")
	for _, r := range s.edge.Replicas() {
		s.replicas.Put(serving.Endpoint{Replica: r.Replica, Addr: r.Addr, Token: s.gateway.token().Bytes()})
	}
	s.replica("m/1")
	s.connected(2)
	stop()
	s.connected(1)
	before = asked.Load()
	wait.Until(t, "more answers", func() bool { return asked.Load() > before+10 })
	close(done)
	load.Wait()
	if err := s.ask(client, firstKey); err == nil || !strings.Contains(err.Error(), "status 401") {
		t.Errorf("the old key: %v", err)
	}
	t.Logf("%d queries", asked.Load())
}
