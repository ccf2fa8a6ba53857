package gateway_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// A program can embed the gateway and ask it without HTTP. This one also runs the
// replica that answers: a sidecar, and a container with a model written in Go.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	version := &serving.Version{ModelID: serving.ModelID{Model: "doubling", Version: "1"}, InputType: serving.Doubles}
	endpoint := startReplica(ctx, &running, network{listen: listenTCP}, "doubling/0", version, func(inputs []serving.Value) []gocontainer.Result {
		results := make([]gocontainer.Result, len(inputs))
		for i, in := range inputs {
			x := math.Float64frombits(binary.LittleEndian.Uint64(in.Data))
			results[i].Output = serving.Number(2 * x)
		}
		return results
	})

	g := gateway.New(ctx, gateway.Config{
		Name:       "example",
		Catalog:    fixed{catalogOf(version)},
		Resolver:   replicas{endpoint},
		CacheBytes: 1 << 20,
	})
	running.Go(func() { _ = g.Run(ctx, nil) }) // nil: no HTTP

	input := serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(21))}
	for range time.Tick(5 * time.Millisecond) {
		ps, err := g.Predict(ctx, serving.Query{App: "double-it", Input: input, Received: time.Now()})
		if errors.Is(err, serving.ErrNoCatalog) || ps[0].Default {
			continue // Run has just begun, and the replica is not connected yet
		}
		fmt.Printf("%s by %v, error: %v\n", ps[0].Output, ps[0].Model, err)
		break
	}
	// Output: 42.0 by doubling:1, error: <nil>
}

// catalogOf registers one app, linked to the model of one version.
func catalogOf(v *serving.Version) *serving.Catalog {
	app := &serving.App{
		Name:          "double-it",
		InputType:     serving.Doubles,
		DefaultOutput: "-1.0",
		SLO:           serving.Duration(time.Second),
		Models:        []string{v.Model},
	}
	model := &serving.Model{Name: v.Model, Current: v.Version, Versions: map[string]*serving.Version{v.Version: v}}
	return &serving.Catalog{
		Revision: 1,
		Apps:     map[string]*serving.App{app.Name: app},
		Models:   map[string]*serving.Model{model.Name: model},
	}
}

// fixed is a catalog that never changes.
type fixed struct{ catalog *serving.Catalog }

// Watch implements gateway.Catalog.
func (f fixed) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	update(f.catalog)
	<-ctx.Done()
	return ctx.Err()
}

// replicas are always the same.
type replicas []serving.Endpoint

// Watch implements route.Resolver.
func (r replicas) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	update(r)
	<-ctx.Done()
	return ctx.Err()
}

// network is how the parts reach each other.
type network struct {
	listen func() net.Listener
	dial   func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// startReplica runs a sidecar with one container until ctx ends.
func startReplica(ctx context.Context, running *sync.WaitGroup, on network, name string, v *serving.Version, model gocontainer.Predict) serving.Endpoint {
	gateways, containers := on.listen(), on.listen()
	side := sidecar.New(sidecar.Config{Replica: name, Models: []*serving.Version{v}}, nil, nil)
	running.Go(func() { _ = side.Run(ctx, gateways, containers) })
	running.Go(func() {
		_ = gocontainer.Serve(ctx, gocontainer.Config{Sidecar: containers.Addr().String(), Model: v.ModelID, Replica: name, Dial: on.dial}, model)
	})
	return serving.Endpoint{Replica: name, Addr: gateways.Addr().String()}
}

func listenTCP() net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return ln
}
