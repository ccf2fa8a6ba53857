package gateway_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"topsail/containers/gocontainer"
	"topsail/gateway"
	"topsail/gateway/httpapi"
	"topsail/internal/local"
	"topsail/internal/obs"
	"topsail/serving"
)

// starter is a waker that starts a replica when it is told to.
type starter struct {
	woken   chan serving.ModelID
	replica chan struct{}
	start   func()
	once    sync.Once
}

func (s *starter) Wake(ctx context.Context, id serving.ModelID) error {
	select {
	case s.woken <- id:
	default:
	}
	s.once.Do(func() {
		select {
		case <-s.replica:
			s.start()
		case <-ctx.Done():
		}
	})
	return nil
}

// A gateway that stops takes no more queries and answers those that it holds: with
// what a replica says that comes meanwhile, or by their deadlines.
func TestAStoppingGatewayAnswersWhatItHolds(t *testing.T) {
	all, stop := context.WithTimeout(t.Context(), 30*time.Second)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	v := newVersion("m", "1")
	replicas, metrics := local.NewRegistry(), obs.NewRegistry()
	endpoint := startReplica(all, &running, v, double)
	waker := &starter{woken: make(chan serving.ModelID, 100), replica: make(chan struct{}), start: func() { replicas.Put(endpoint) }}
	cat := catalogOf(v)
	cat.Apps["double-it"].ColdStart = 20 * time.Second
	ctx, cancel := context.WithCancel(all)
	defer cancel()
	ln := listen()
	g := gateway.New(ctx, gateway.Config{
		Name: "test", Catalog: fixed{cat}, Resolver: replicas, Waker: waker, Metrics: metrics,
		HTTP: httpapi.Config{DrainTimeout: 20 * time.Second},
	})
	ended := make(chan error, 1)
	running.Go(func() { ended <- g.Run(ctx, ln) })
	eventually(t, func() bool { _, ok := g.App("double-it"); return ok })

	short, long := make(chan answer, 1), make(chan answer, 1)
	running.Go(func() { short <- post(t, ln, `{"input": [1], "slo_micros": 500000}`) })
	running.Go(func() { long <- post(t, ln, `{"input": [2]}`) })
	eventually(t, func() bool { return sample(metrics, "topsail_gateway_held") == "2" })
	if id := <-waker.woken; id != v.ModelID {
		t.Errorf("%v was woken", id)
	}
	cancel()
	eventually(t, func() bool {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	if a := <-short; !a.Default || a.Explanation != "No connected models found for query" {
		t.Errorf("the query with little time got %+v", a)
	}
	close(waker.replica)
	if a := <-long; a.Default || a.Output != 4 {
		t.Errorf("the query with time got %+v", a)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func double(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		results[i].Output = serving.Number(2 * in.Doubles()[0])
	}
	return results
}

type answer struct {
	Output      float64
	Default     bool
	Explanation string `json:"default_explanation"`
}

func post(t *testing.T, ln net.Listener, body string) (a answer) {
	resp, err := http.Post("http://"+ln.Addr().String()+"/double-it/predict", "application/json", strings.NewReader(body))
	if err != nil {
		t.Errorf("a query: %v", err)
		return a
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a query: %d, %v", resp.StatusCode, err)
	}
	return a
}
