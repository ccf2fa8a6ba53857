//go:build system

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// party is somebody with files: a certificate, its authorities, a token, keys.
type party struct {
	t    testing.TB
	dir  string
	tls  access.TLS
	log  *slog.Logger
	text journal.Journal
}

func newParty(t testing.TB, ca *testca.Authority) *party {
	p := &party{t: t, dir: t.TempDir()}
	p.log = slog.New(slog.NewTextHandler(&p.text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p.tls = access.TLS{RequireClientCert: true, Log: p.log}
	p.trust(ca)
	p.certify(ca)
	p.write("token", "first-token")
	p.write("keys", "client:"+firstKey)
	return p
}

func (p *party) write(name, content string) string {
	return testca.Write(p.t, p.dir, name, []byte(content))
}

func (p *party) trust(authorities ...*testca.Authority) {
	all := ""
	for _, a := range authorities {
		all += string(a.PEM)
	}
	p.tls.CAFile = p.write("ca.pem", all)
}

func (p *party) certify(by *testca.Authority) {
	pair := by.Issue(p.t, "127.0.0.1", "localhost")
	p.tls.CertFile, p.tls.KeyFile = p.write("cert.pem", string(pair.Cert)), p.write("key.pem", string(pair.Key))
}

// reread waits until one of the party's files was read again.
func (p *party) reread(file string, do func()) {
	p.t.Helper()
	count := func() int {
		n := 0
		for line := range strings.Lines(p.text.String()) {
			if strings.Contains(line, "read a changed file") && strings.Contains(line, file) {
				n++
			}
		}
		return n
	}
	before := count()
	do()
	wait.Until(p.t, "that it is read again: "+file, func() bool { return count() > before })
}

func (p *party) listen() net.Listener {
	p.t.Helper()
	ln, err := p.tls.Listen(listen(p.t))
	require.NoError(p.t, err)
	return ln
}

func (p *party) dialer() func(context.Context, string) (net.Conn, error) {
	p.t.Helper()
	dial, err := p.tls.Dialer()
	require.NoError(p.t, err)
	return dial
}

func (p *party) token() access.Secret {
	p.t.Helper()
	token, err := access.TokenFile(p.dir+"/token", p.log)
	require.NoError(p.t, err)
	return token
}

const (
	firstKey  = "first-key-0123456789"
	secondKey = "second-key-0123456789"
)

// secured is everything in one process, over mutual TLS, with tokens and keys.
type secured struct {
	t                                   testing.TB
	ctx                                 context.Context
	gateway, sidecar, container, client *party
	replicas                            *inprocess.Registry
	edge                                *gateway.Gateway
	url                                 string
}

func newSecured(t testing.TB, ca *testca.Authority, slo time.Duration) *secured {
	ctx, cancel := context.WithCancel(context.Background())
	s := &secured{
		t: t, ctx: ctx, replicas: inprocess.NewRegistry(),
		gateway: newParty(t, ca), sidecar: newParty(t, ca), container: newParty(t, ca), client: newParty(t, ca),
	}
	keys, err := access.KeysFile(s.gateway.dir+"/keys", s.gateway.log)
	require.NoError(t, err)
	ln := s.gateway.listen()
	s.url = "https://" + strings.Replace(ln.Addr().String(), "127.0.0.1", "localhost", 1) + "/app/predict"
	s.edge = gateway.New(ctx, gateway.Config{
		Name: "edge", Catalog: fixed{catalog(slo)}, Resolver: s.replicas,
		Dial: s.gateway.dialer(), HTTP: httpapi.Config{Keys: keys}, Log: s.gateway.log,
	})
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.edge.Run(ctx, ln); err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// catalog has an app with a model.
func catalog(slo time.Duration) *serving.Catalog {
	m := &serving.Model{Name: "m", Current: "1", Versions: map[string]*serving.Version{"1": version("m", "1")}}
	a := &serving.App{Name: "app", InputType: serving.Doubles, DefaultOutput: "-1", SLO: serving.Duration(slo), Models: []string{"m"}}
	return &serving.Catalog{Revision: 1, Apps: map[string]*serving.App{"app": a}, Models: map[string]*serving.Model{"m": m}}
}

// replica starts a sidecar and its container, and returns what stops them.
func (s *secured) replica(name string) (stop func()) {
	s.t.Helper()
	gateways, containers := s.sidecar.listen(), s.sidecar.listen()
	ctx, cancel := context.WithCancel(s.ctx)
	v := version("m", "1")
	one := sidecar.New(sidecar.Config{
		Replica: name, Models: []*serving.Version{v}, ContainerToken: []byte("of the container"), GatewayToken: s.sidecar.token().Bytes,
	}, sidecar.NewMetrics(obs.NewRegistry()), s.sidecar.log)
	near := s.tunnel(ctx, containers.Addr().String())
	var running sync.WaitGroup
	running.Go(func() { one.Run(ctx, gateways, containers) })
	running.Go(func() {
		gocontainer.ServeQueries(ctx, gocontainer.Config{Sidecar: near, Token: "of the container", Model: v.ModelID, Replica: name}, model(sum).predict)
	})
	s.replicas.Put(serving.Endpoint{Replica: name, Addr: gateways.Addr().String(), Token: s.gateway.token().Bytes()})
	stop = sync.OnceFunc(func() {
		s.replicas.Remove(name)
		cancel()
		running.Wait()
	})
	s.t.Cleanup(stop)
	return stop
}

// tunnel speaks TLS for a container, which does not: it listens on loopback and
// passes on to addr.
func (s *secured) tunnel(ctx context.Context, addr string) (near string) {
	ln, dial := listen(s.t), s.container.dialer()
	var running sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	s.t.Cleanup(func() { stop(); ln.Close(); running.Wait() })
	running.Go(func() {
		for {
			here, err := ln.Accept()
			if err != nil {
				return
			}
			there, err := dial(ctx, addr)
			if err != nil {
				here.Close()
				continue
			}
			running.Go(func() { defer here.Close(); _, _ = io.Copy(here, there) })
			running.Go(func() { defer there.Close(); _, _ = io.Copy(there, here) })
		}
	})
	return ln.Addr().String()
}

// connected waits until n replicas serve at the gateway.
func (s *secured) connected(n int) {
	s.t.Helper()
	wait.Until(s.t, "the replicas", func() bool {
		ready := 0
		for _, r := range s.edge.Replicas() {
			ready += len(r.Models)
		}
		return ready == n
	})
}

// http is a client that shakes hands for every request.
func (p *party) http() *http.Client {
	p.t.Helper()
	config, err := p.tls.Client()
	require.NoError(p.t, err)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 10 * time.Second}
}

// ask sends one query, and is nil when a model answers it.
func (s *secured) ask(client *http.Client, key string) error {
	request, err := http.NewRequestWithContext(s.ctx, "POST", s.url, strings.NewReader(`{"input":[1,2,3.5]}`))
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", key)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Output  float64
		Default bool
		Cause   string
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != 200 || answer.Default || answer.Output != 6.5 {
		return fmt.Errorf("status %d, %+v, %v", response.StatusCode, answer, err)
	}
	return nil
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return ln
}
