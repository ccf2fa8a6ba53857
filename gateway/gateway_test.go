package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

func newVersion(model, version string) *serving.Version {
	return &serving.Version{ModelID: serving.ModelID{Model: model, Version: version}, InputType: serving.Doubles}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(t.Context(), gateway.Config{Catalog: fixed{catalogOf(newVersion("m", "1"))}, Resolver: inprocess.NewRegistry()})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx, nil) }()
		synctest.Wait()
		if _, err := g.App("double-it"); err != nil || len(ended) != 0 {
			t.Fatal("it does not run")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

var errGone = errors.New("the source is gone for good")

// failing is a catalog and a resolver that gives up after a while.
type failing[T any] struct{}

func (failing[T]) Watch(ctx context.Context, _ func(T)) error {
	select {
	case <-time.After(time.Second):
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A gateway without its catalog or its resolver would serve what once was, for
// ever and unseen: Run ends.
func TestRunEndsWhenASourceFails(t *testing.T) {
	for name, cfg := range map[string]gateway.Config{
		"the catalog":  {Catalog: failing[*serving.Catalog]{}, Resolver: idle[[]serving.Endpoint]{}},
		"the resolver": {Catalog: fixed{&serving.Catalog{}}, Resolver: failing[[]serving.Endpoint]{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := gateway.New(t.Context(), cfg).Run(t.Context(), nil); !errors.Is(err, errGone) {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

// idle never calls back.
type idle[T any] struct{}

func (idle[T]) Watch(ctx context.Context, _ func(T)) error {
	<-ctx.Done()
	return ctx.Err()
}

// sequence is a catalog that changes when it is told to.
type sequence chan *serving.Catalog

func (s sequence) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	for {
		select {
		case cat := <-s:
			update(cat)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A gateway that has just started must not say that an app does not exist because it
// has not heard of any yet.
func TestClientsWaitForTheFirstCatalogNotForLong(t *testing.T) {
	bubble(t, func(t *world) {
		catalogs := make(sequence)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		defer func() { cancel(); <-ended }()
		ln := t.on.listen()
		g := gateway.New(t.Context(), gateway.Config{Dial: t.on.dial, Catalog: catalogs, Resolver: idle[[]serving.Endpoint]{}})
		go func() { ended <- g.Run(ctx, ln) }()
		ask := func() int {
			resp, err := t.client.Post("http://"+ln.Addr().String()+"/double-it/predict", "application/json", strings.NewReader(`{"input": [1.0]}`))
			require.NoError(t, err)
			defer resp.Body.Close()
			return resp.StatusCode
		}
		if got := ask(); got != http.StatusServiceUnavailable {
			t.Errorf("without a catalog: %d", got)
		}
		catalogs <- catalogOf(newVersion("m", "1"))
		wait.Until(t, "an answer", func() bool { return ask() == http.StatusOK })
	})
}

func TestACatalogThatCannotBeUsedLeavesTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		catalogs := make(sequence)
		g := gateway.New(t.Context(), gateway.Config{
			Catalog: catalogs, Resolver: idle[[]serving.Endpoint]{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx, nil) }()
		catalogs <- catalogOf(newVersion("m", "1"))
		bad := catalogOf(newVersion("m", "1"))
		bad.Revision = 7
		bad.Apps["double-it"].Policy.Kind = "oracle"
		bad.Apps["another"] = &serving.App{Name: "another"}
		catalogs <- bad
		synctest.Wait()
		if _, err := g.App("another"); err == nil {
			t.Error("the bad catalog is in use")
		}
		if a, err := g.App("double-it"); err != nil || a.Policy.Kind != "" {
			t.Error("the good catalog is not in use any more")
		}
		if text := log.String(); !strings.Contains(text, "revision=7") || !strings.Contains(text, "oracle") {
			t.Errorf("logged: %s", text)
		}
		cancel()
		<-ended
	})
}

// A gateway that stops answers the queries that it has: its connections to
// replicas go last.
func TestAStoppingGatewayAnswersWhatItHas(t *testing.T) {
	bubble(t, func(t *world) {
		asked, release := make(chan struct{}, 1), make(chan struct{})
		v := newVersion("m", "1")
		endpoint := t.replica("m/0", v, func(inputs []serving.Value) []gocontainer.Result {
			results := make([]gocontainer.Result, len(inputs))
			asked <- struct{}{}
			<-release
			for i := range results {
				results[i].Output = serving.Number(1)
			}
			return results
		})
		metrics := obs.NewRegistry()
		t.replicas.Put(endpoint)
		cat := catalogOf(v)
		cat.Apps["double-it"].SLO = serving.Duration(20 * time.Second)
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		ln := t.on.listen()
		g, ended := t.gateway(ctx, ln, gateway.Config{Catalog: fixed{cat}, CacheBytes: 1 << 20, Metrics: metrics, HTTP: httpapi.Config{DrainTimeout: 20 * time.Second}})
		t.ready(g, 1)
		t.running.Go(func() {
			resp, err := t.client.Post("http://"+ln.Addr().String()+"/double-it/predict", "application/json", strings.NewReader(`{"input": [1]}`))
			if err != nil {
				t.Errorf("the query in flight: %v", err)
				return
			}
			defer resp.Body.Close()
			var answer struct {
				Output  float64
				Default bool
			}
			if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Default || answer.Output != 1 {
				t.Errorf("the query in flight got %+v, %v", answer, err)
			}
		})
		<-asked
		for name, want := range map[string]string{
			"topsail_gateway_in_flight":         "1",
			"topsail_gateway_cache_entries":     "0",
			"topsail_gateway_replica_in_flight": "1",
			"topsail_gateway_replica_connected": "1",
			"topsail_gateway_replica_ejected":   "0",
		} {
			if got := sample(metrics, name); got != want {
				t.Errorf("%s is %q, want %s", name, got, want)
			}
		}
		cancel()
		wait.Until(t, "that it takes no more", func() bool { // it takes no more
			nc, err := t.on.dial(t.ctx, ln.Addr().String())
			if err == nil {
				nc.Close()
			}
			return err != nil
		})
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if st := g.Replicas(); len(st) != 0 {
			t.Errorf("after Run: %+v", st)
		}
	})
}

// A model that no app links is asked by its own name over gRPC if the gateway exposes models, and a default of it is an error.
func TestAModelThatIsExposedOverGRPC(t *testing.T) {
	for _, expose := range []bool{true, false} {
		bubble(t, func(t *world) {
			v := newVersion("m", "1")
			t.replicas.Put(t.replica("m/0", v, func(inputs []serving.Value) []gocontainer.Result {
				results := make([]gocontainer.Result, len(inputs))
				for i := range results {
					results[i].Output = serving.Number(float64(len(inputs[i].Data) / 8))
				}
				return results
			}))
			cat := catalogOf(v)
			cat.Apps = nil
			cat.Models["cold"] = &serving.Model{Name: "cold", Current: "1", Versions: map[string]*serving.Version{"1": newVersion("cold", "1")}}
			ln := t.on.listen()
			g, _ := t.gateway(t.ctx, nil, gateway.Config{Catalog: fixed{cat}, ExposeModels: expose, GRPCListener: ln})
			t.ready(g, 1)
			conn, err := grpc.NewClient("passthrough:"+ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(t.on.dial))
			require.NoError(t, err)
			defer conn.Close()
			client := proto.NewGRPCInferenceServiceClient(conn)
			ask := func(model string) (*proto.ModelInferResponse, error) {
				return client.ModelInfer(t.ctx, &proto.ModelInferRequest{ModelName: model, Inputs: []*proto.ModelInferRequest_InferInputTensor{{
					Name: "input", Datatype: "FP64", Shape: []int64{1, 3}, Contents: &proto.InferTensorContents{Fp64Contents: []float64{1, 2, 3}},
				}}})
			}
			index, err := client.RepositoryIndex(t.ctx, &proto.RepositoryIndexRequest{})
			if err != nil || (len(index.Models) == 2) != expose {
				t.Errorf("exposed %v: %v, %v", expose, index, err)
			}
			got, err := ask("m")
			if !expose {
				if status.Code(err) != codes.NotFound {
					t.Errorf("a model that is not exposed: %v, %v", got, err)
				}
				return
			}
			if err != nil || !slices.Equal(got.Outputs[0].Contents.GetFp64Contents(), []float64{3}) {
				t.Errorf("%v, %v", got, err)
			}
			if got, err := ask("cold"); status.Code(err) != codes.Unavailable {
				t.Errorf("a model without a replica: %v, %v", got, err)
			}
		})
	}
}

// sample is the value of a metric, whatever its labels.
func sample(metrics *obs.Registry, name string) string {
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		full, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if full == name || strings.HasPrefix(full, name+"{") {
			return value
		}
	}
	return ""
}
