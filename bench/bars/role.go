package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

const cacheBytes = 64 << 20

// runRole is the whole of a measured process: it serves until ctx ends.
func runRole(ctx context.Context, role string, s setup) error {
	go collects(ctx)
	switch role {
	case "gateway":
		return serveGateway(ctx, s)
	case "sidecar":
		return serveSidecar(ctx, s)
	case "container":
		return serveContainer(ctx, s)
	case "stream":
		return serveStream(ctx, s)
	case "echo":
		return serveEcho(ctx)
	case "baretalk":
		return serveBareTalk(ctx)
	case "bare":
		return serveBare(ctx, bareRoute())
	case "barejson":
		return serveBare(ctx, bareJSONRoute())
	}
	return fmt.Errorf("there is no role %q", role)
}

// collect is the signal at which a process gives back the memory that it does not use, within some time.
const (
	collect       = syscall.SIGUSR1
	collectWithin = 300 * time.Millisecond
)

func collects(ctx context.Context) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, collect)
	defer signal.Stop(asked)
	for {
		select {
		case <-asked:
			debug.FreeOSMemory()
		case <-ctx.Done():
			return
		}
	}
}

// announce tells the parent where this process listens.
func announce(l listening) error { return json.NewEncoder(os.Stdout).Encode(l) }

func newLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func newGateway(ctx context.Context, s setup, metrics *obs.Registry, grpc net.Listener) *gateway.Gateway {
	replicas := inprocess.NewRegistry()
	for place, addr := range s.Endpoints {
		replicas.Put(serving.Endpoint{Replica: replicaName(place), Addr: addr})
	}
	return gateway.New(ctx, gateway.Config{
		Name: "bench", Catalog: s, Resolver: replicas, CacheBytes: cacheBytes, Metrics: metrics, Log: newLog(), GRPCListener: grpc,
	})
}

// connected says why a gateway has not all of its replicas yet, or nil.
func connected(g *gateway.Gateway, s setup) error {
	ready := 0
	for _, r := range g.Replicas() {
		if len(r.Models) > 0 {
			ready++
		}
	}
	if ready < len(s.Endpoints) {
		return fmt.Errorf("%d of %d replicas are ready", ready, len(s.Endpoints))
	}
	return nil
}

func newSidecar(s setup, metrics *obs.Registry) *sidecar.Sidecar {
	return sidecar.New(sidecar.Config{Replica: replicaName(s.Place), Models: []*serving.Version{s.version(s.Place)}}, sidecar.NewMetrics(metrics), newLog())
}

func serveGateway(ctx context.Context, s setup) error {
	ln, err := listen(3)
	if err != nil {
		return err
	}
	metrics := obs.NewRegistry()
	g := newGateway(ctx, s, metrics, ln[2])
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.Run(ctx, ln[0]) })
	group.Go(func() error {
		return obs.ServeOps(ctx, obs.Listener{Listener: ln[1], Metrics: metrics}, obs.Health{Ready: func() error { return connected(g, s) }}, nil)
	})
	group.Go(func() error {
		return announce(listening{Addr: ln[0].Addr().String(), Ops: ln[1].Addr().String(), GRPC: ln[2].Addr().String()})
	})
	return group.Wait()
}

func serveSidecar(ctx context.Context, s setup) error {
	sidecar.LeaveProcessors()
	ln, err := listen(3)
	if err != nil {
		return err
	}
	metrics := obs.NewRegistry()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return newSidecar(s, metrics).Run(ctx, ln[0], ln[1]) })
	group.Go(func() error {
		return obs.ServeOps(ctx, obs.Listener{Listener: ln[2], Metrics: metrics}, obs.Health{Ready: func() error { return nil }}, nil)
	})
	group.Go(func() error {
		return announce(listening{Addr: ln[0].Addr().String(), Containers: ln[1].Addr().String(), Ops: ln[2].Addr().String()})
	})
	return group.Wait()
}

func serveContainer(ctx context.Context, s setup) error {
	if s.Containers[s.Place] == "talk" {
		return serveTalk(ctx, s)
	}
	predict, err := containerModel(s.Containers[s.Place])
	if err != nil {
		return err
	}
	if err := announce(listening{}); err != nil {
		return err
	}
	if s.Sidecar == "" { // Topsail in local mode has started this
		config, err := gocontainer.FromEnv()
		if err != nil {
			return err
		}
		return gocontainer.Serve(ctx, config, predict)
	}
	of, length := s.input()
	return gocontainer.Serve(ctx, gocontainer.Config{
		Sidecar: s.Sidecar, Model: modelVersion(s.Place), InputType: of, InputLength: length, Replica: replicaName(s.Place),
	}, predict)
}

// listen opens n listeners on free ports.
func listen(n int) ([]net.Listener, error) {
	var all []net.Listener
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err // the process ends, and closes the others
		}
		all = append(all, ln)
	}
	return all, nil
}
