// Command embed is a program with a gateway of its own: it reads the apps and models from a configuration file, runs the
// models itself, keeps what feedback teaches in a store of its own, and serves the metrics with its own HTTP server. It
// makes one query, teaches the gateway what is right, and ends.
//
// usage: embed TOPSAIL.TOML
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/sidecar"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "embed: name the configuration file: embed TOPSAIL.TOML")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	cfg, err := config.Load(file, os.Environ(), nil)
	if err != nil {
		return err
	}
	apps, versions := cfg.Objects()
	cat, _, err := catalog.Merge(&serving.Catalog{}, apps, versions, cfg.Current)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	base := role.New(cfg, log) // what the settings of [gateway] say, such as limits and keys
	httpConfig, err := base.HTTP()
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	within := new(rpc.Local) // from the gateway to the sidecars, without sockets
	kept, demand := newStore(), gateway.NewMeter()
	served, err := startReplicas(ctx, &running, within, cat)
	if err != nil {
		return err
	}
	g := gateway.New(ctx, gateway.Config{
		Name: "embed", Catalog: fixed[*serving.Catalog]{cat}, Resolver: fixed[[]serving.Endpoint]{served}, Dial: within.Dial,
		States: kept, Records: kept, Demand: demand, Metrics: base.Metrics,
		CacheBytes: int64(cfg.Gateway.CacheBytes), HTTP: httpConfig, Log: log,
	})
	reporter := gateway.Reporter{Source: serving.DemandSource{Role: "gateway", Name: "embed"}, Meter: demand, Sink: kept}
	running.Go(func() { _ = g.Run(ctx, nil) }) // nil: no HTTP; a listener serves queries, too
	running.Go(func() { reporter.Run(ctx) })
	if err := teach(ctx, g); err != nil {
		return err
	}
	metrics, err := startMetrics(ctx, &running, base.Metrics)
	if err != nil {
		return err
	}
	if err := showMetrics(ctx, metrics); err != nil {
		return err
	}
	stop()
	running.Wait() // the last report of demand
	kept.show()
	return nil
}

// teach queries the app, and says what the right answer is.
func teach(ctx context.Context, g *gateway.Gateway) error {
	input := serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(21))}
	for {
		ps, err := g.Predict(ctx, serving.Query{App: "double-it", Input: input, Received: time.Now()})
		switch {
		case err != nil && !errors.Is(err, serving.ErrNoCatalog):
			return err
		case err != nil || ps[0].Default: // the gateway or the models are starting
			select {
			case <-time.After(5 * time.Millisecond):
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		fmt.Printf("%v answers %s\n", ps[0].Model, ps[0].Output)
		right, err := serving.NewOutput(serving.Number(42))
		if err != nil {
			return err
		}
		learned, err := g.Feedback(ctx, []serving.Feedback{{App: "double-it", QueryID: ps[0].QueryID, Label: right}})
		if err != nil {
			return err
		}
		fmt.Printf("feedback is joined with a %s, and trains %d state\n", learned[0].Joined, len(learned[0].Trained))
		return nil
	}
}

// startMetrics serves metrics beside what else the program serves, until ctx ends.
func startMetrics(ctx context.Context, running *sync.WaitGroup, metrics *gateway.Registry) (url string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	running.Go(func() { _ = server.Serve(ln) })
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + ln.Addr().String() + "/metrics", nil
}

// showMetrics prints what the gateway has counted of feedback.
func showMetrics(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "topsail_feedback_total{") {
			fmt.Print(line)
		}
	}
	return err
}

// startReplicas runs a replica of each version: a sidecar, and a container with a model in Go.
func startReplicas(ctx context.Context, running *sync.WaitGroup, within *rpc.Local, cat *serving.Catalog) (all []serving.Endpoint, err error) {
	factors := map[string]float64{"doubling": 2, "tripling": 3}
	for _, m := range cat.Models {
		version, factor := m.Versions[m.Current], factors[m.Name]
		containers, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		gateways, name := within.Listen(), m.Name+"/0"
		side := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{version}}, nil, nil)
		running.Go(func() { _ = side.Run(ctx, gateways, containers) })
		running.Go(func() {
			model := gocontainer.Config{Sidecar: containers.Addr().String(), Model: version.ModelID, Replica: name}
			_ = gocontainer.Serve(ctx, model, func(inputs []serving.Value) []gocontainer.Result { return multiply(inputs, factor) })
		})
		all = append(all, serving.Endpoint{Replica: name, Addr: gateways.Addr().String()})
	}
	return all, nil
}

func multiply(inputs []serving.Value, by float64) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		results[i].Output = serving.Number(by * math.Float64frombits(binary.LittleEndian.Uint64(in.Data)))
	}
	return results
}

// fixed is a catalog, or a list of replicas, that never changes.
type fixed[T any] struct{ value T }

// Watch implements gateway.Catalog and route.Resolver.
func (f fixed[T]) Watch(ctx context.Context, update func(T)) error {
	update(f.value)
	<-ctx.Done()
	return ctx.Err()
}
