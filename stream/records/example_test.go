package records_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
)

// A program can serve a stream of its own, whatever that is in, with a gateway in its
// process. This one also runs the replica that answers.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	version := &serving.Version{ModelID: serving.ModelID{Model: "doubling", Version: "1"}, InputType: serving.Doubles}
	g := gateway.New(ctx, gateway.Config{
		Name: "example", Catalog: fixed{catalogOf(version)}, Resolver: replicas{startReplica(ctx, &running, version)}, CacheBytes: 1 << 20,
	})
	running.Go(func() { _ = g.Run(ctx, nil) }) // nil: no HTTP

	source := &list{committed: make(chan serving.StreamMessage, 2), records: []serving.StreamRecord{
		{Stream: "numbers", Place: "0/0", Value: []byte(`{"uuid": "a", "input": [21]}`)},
		{Stream: "numbers", Place: "0/1", Value: []byte(`{"uuid": "b", "input": "twenty-one"}`)},
	}}
	job, err := records.New(records.Config{
		Config: stream.Config{Name: "doubles", Consumer: source, Output: "doubled", DeadLetter: "dead"},
		Scorer: g, App: "double-it", Patience: 10 * time.Second, // until the gateway has found the replica
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	running.Go(func() { _ = job.Run(ctx) })

	for range 2 {
		m := <-source.committed
		if m.Stream == "dead" {
			fmt.Printf("dead: %s\n", m.Headers[0].Value)
			continue
		}
		result, err := records.ParseResponse(m.Value, stream.JSON)
		fmt.Printf("%s: %s by %s, error: %v\n", result.UUID, result.Output, result.Model, err)
	}
	// Unordered output:
	// a: 42.0 by doubling, error: <nil>
	// dead: input must be an array of numbers, not "twenty-one"
}

// list is a consumer of what it has.
type list struct {
	records   []serving.StreamRecord // that are not polled
	committed chan serving.StreamMessage
}

// Poll implements stream.Consumer.
func (l *list) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	if len(l.records) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	polled := l.records[:min(most, len(l.records))]
	l.records = l.records[len(polled):]
	return polled, nil
}

// Commit implements stream.Consumer.
func (l *list) Commit(_ context.Context, results []serving.StreamResult) (waiting []int, err error) {
	for _, r := range results {
		l.committed <- r.Messages[0]
	}
	return nil, nil
}

// Close implements stream.Consumer.
func (l *list) Close() error { return nil }

func catalogOf(v *serving.Version) *serving.Catalog {
	app := &serving.App{Name: "double-it", InputType: serving.Doubles, DefaultOutput: "-1.0", SLO: serving.Duration(time.Second), Models: []string{v.Model}}
	model := &serving.Model{Name: v.Model, Current: v.Version, Versions: map[string]*serving.Version{v.Version: v}}
	return &serving.Catalog{
		Revision: 1, Apps: map[string]*serving.App{app.Name: app}, Models: map[string]*serving.Model{model.Name: model},
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

// startReplica runs a sidecar with one container until ctx ends.
func startReplica(ctx context.Context, running *sync.WaitGroup, v *serving.Version) serving.Endpoint {
	gateways, containers := listen(), listen()
	side := sidecar.New(sidecar.Config{Replica: "doubling/0", Models: []*serving.Version{v}}, nil, nil)
	running.Go(func() { _ = side.Run(ctx, gateways, containers) })
	running.Go(func() {
		_ = gocontainer.Serve(ctx, gocontainer.Config{Sidecar: containers.Addr().String(), Model: v.ModelID, Replica: "doubling/0"}, double)
	})
	return serving.Endpoint{Replica: "doubling/0", Addr: gateways.Addr().String()}
}

func double(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		results[i].Output = serving.Number(2 * math.Float64frombits(binary.LittleEndian.Uint64(in.Data)))
	}
	return results
}

func listen() net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return ln
}
