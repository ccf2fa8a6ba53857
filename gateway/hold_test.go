package gateway_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
)

// bell is a waker that says who is woken.
type bell chan serving.ModelID

func (b bell) Wake(_ context.Context, id serving.ModelID) error {
	select {
	case b <- id:
	default:
	}
	return nil
}

// A gateway that stops takes no more queries and answers those that it holds: with
// what a replica says that comes meanwhile, or by their deadlines.
func TestAStoppingGatewayAnswersWhatItHolds(t *testing.T) {
	bubble(t, func(t *world) {
		v := newVersion("m", "1")
		metrics := obs.NewRegistry()
		endpoint := t.replica("m/0", v, double)
		woken := make(bell, 1)
		cat := catalogOf(v)
		cat.Apps["double-it"].ColdStart = serving.Duration(20 * time.Second)
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		ln := t.on.listen()
		g, ended := t.gateway(ctx, ln, gateway.Config{Catalog: fixed{cat}, Waker: woken, Metrics: metrics, HTTP: httpapi.Config{DrainTimeout: 20 * time.Second}})
		wait.Until(t, "the catalog", func() bool { _, err := g.App("double-it"); return err == nil })

		short, long := make(chan answer, 1), make(chan answer, 1)
		t.running.Go(func() { short <- t.post(ln, `{"input": [1], "slo_micros": 3000000}`) })
		t.running.Go(func() { long <- t.post(ln, `{"input": [2]}`) })
		wait.Until(t, "both queries in the queue", func() bool { return sample(metrics, "topsail_gateway_cold_start_queue") == "2" })
		if id := <-woken; id != v.ModelID {
			t.Errorf("%v was woken", id)
		}
		cancel()
		wait.Until(t, "that it takes no more", func() bool {
			nc, err := t.on.dial(t.ctx, ln.Addr().String())
			if err == nil {
				nc.Close()
			}
			return err != nil
		})
		if a := <-short; !a.Default || a.Explanation != "No connected models found for query" {
			t.Errorf("the query with little time got %+v", a)
		}
		t.replicas.Put(endpoint)
		if a := <-long; a.Default || a.Output != 4 {
			t.Errorf("the query with time got %+v", a)
		}
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func double(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		results[i].Output = serving.Number(2 * math.Float64frombits(binary.LittleEndian.Uint64(in.Data)))
	}
	return results
}

type answer struct {
	Output      float64
	Default     bool
	Explanation string `json:"default_explanation"`
}

// post asks a gateway.
func (w *world) post(ln net.Listener, body string) (a answer) {
	resp, err := w.client.Post("http://"+ln.Addr().String()+"/double-it/predict", "application/json", strings.NewReader(body))
	if err != nil {
		w.Errorf("a query: %v", err)
		return a
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		w.Errorf("a query: %d, %v", resp.StatusCode, err)
	}
	return a
}

// The only replica is restarted again and again under load. What it refuses while it
// stops waits for the next, and so does what comes while there is none.
func TestRestartsOfTheOnlyReplica(t *testing.T) {
	bubble(t, func(t *world) {
		v := newVersion("m", "1")
		model := func(inputs []serving.Value) []gocontainer.Result {
			time.Sleep(time.Millisecond)
			return double(inputs)
		}
		cat := catalogOf(v)
		cat.Apps["double-it"].SLO = serving.Duration(10 * time.Second)
		g, _ := t.gateway(t.ctx, nil, gateway.Config{Catalog: fixed{cat}})
		wait.Until(t, "the catalog", func() bool { _, err := g.App("double-it"); return err == nil })

		const clients = 8
		var answered [clients]atomic.Int64
		asking, enough := context.WithCancel(t.ctx)
		var askers sync.WaitGroup
		for i := range clients {
			askers.Go(func() {
				for n := 0; asking.Err() == nil; n++ {
					x := float64(clients*n + i)
					input := serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))}
					p, err := predict(t.ctx, g, serving.Query{App: "double-it", Input: input})
					if err != nil || p.Default {
						t.Errorf("query %v: %v %s, %v", x, p.Cause, p.Explanation, err)
					}
					answered[i].Add(1)
				}
			})
		}
		for range 5 {
			life, end := context.WithCancel(t.ctx)
			var replica sync.WaitGroup
			t.replicas.Put(startReplica(life, &replica, t.on, "m/0", v, model))
			t.ready(g, 1)
			var before [clients]int64
			for i := range before {
				before[i] = answered[i].Load()
			}
			// Under load, and no query sees more than one restart: one that is lost twice is given up.
			wait.Until(t, "answers of all clients", func() bool {
				for i := range before {
					if answered[i].Load() < before[i]+2 {
						return false
					}
				}
				return true
			})
			end()
			replica.Wait()
		}
		t.replicas.Put(t.replica("m/0", v, model))
		enough()
		askers.Wait()
	})
}
