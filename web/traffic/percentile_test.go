package traffic

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const ms = time.Millisecond

// TestPercentilesAreRight compares what an app's traffic says, and what is computed of the metrics'
// page as dashboards do, with the times themselves: within 5 %, wherever they are below the objective
// and where defaults come shortly after it.
func TestPercentilesAreRight(t *testing.T) {
	for _, c := range []struct {
		name      string
		objective time.Duration
		took      func(r *rand.Rand) time.Duration
	}{
		{"a model of 1 ms", 100 * ms, spread(ms, 0.1)},
		{"a model of 1 ms, always the same", 100 * ms, spread(1234*time.Microsecond, 0)},
		{"a model of 10 ms", 100 * ms, spread(10*ms, 0.2)},
		{"a model of 50 ms", 100 * ms, spread(50*ms, 0.02)},
		{"defaults after 100 ms", 100 * ms, func(r *rand.Rand) time.Duration { return 100*ms + spread(ms, 0.5)(r) }},
		{"half of it after 100 ms", 100 * ms, func(r *rand.Rand) time.Duration {
			if r.IntN(2) == 0 {
				return 101 * ms
			}
			return spread(70*ms, 0.1)(r)
		}},
		{"a model of 100 ms", time.Second, spread(100*ms, 0.05)},
		{"a model of 300 ms", 500 * ms, spread(300*ms, 0.1)},
		{"defaults after 20 ms", 20 * ms, spread(20300*time.Microsecond, 0.001)},
		{"a long tail", 30 * time.Second, spread(2*time.Second, 0.7)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { percentiles(t, c.objective, c.took) })
		})
	}
}

// spread draws times around a median, with a standard deviation of their logarithms.
func spread(median time.Duration, deviation float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(float64(median) * math.Exp(deviation*r.NormFloat64()))
	}
}

func percentiles(t *testing.T, objective time.Duration, draw func(*rand.Rand) time.Duration) {
	reg := obs.NewRegistry()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	log := slog.New(slog.DiscardHandler)
	g := gateway.New(ctx, gateway.Config{Name: "g", Catalog: oneApp(objective), Resolver: noReplicas{}, CacheBytes: 1 << 20, Metrics: reg})
	running.Go(func() { _ = g.Run(ctx, nil) })
	c := New(Config{Targets: func() []Target { return []Target{{Role: Local, Name: "here", Source: Process{reg}}} }, Log: log})
	running.Go(func() { _ = c.Run(ctx) })
	time.Sleep(1500 * ms)
	r := rand.New(rand.NewPCG(1, uint64(objective)))
	var seconds []float64
	for range 2000 {
		took := draw(r)
		seconds = append(seconds, took.Seconds())
		// There is no replica, and so the default is answered at once. It came when a model's answer would have.
		q := serving.Query{App: "app", Input: serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}, Received: time.Now().Add(-took)}
		if _, err := g.Predict(ctx, q); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * ms)
	}
	time.Sleep(2 * time.Second)
	synctest.Wait()
	slices.Sort(seconds)
	now := c.Now()
	if len(now.Apps) != 1 {
		t.Fatalf("%d apps", len(now.Apps))
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, one := range []struct {
		q    float64
		says int64
	}{{0.5, now.Apps[0].P50}, {0.95, now.Apps[0].P95}, {0.99, now.Apps[0].P99}} {
		want := seconds[int(math.Ceil(one.q*float64(len(seconds))))-1]
		for where, got := range map[string]float64{"traffic": float64(one.says) / 1e6, "a dashboard": onDashboard(families, one.q)} {
			if off := got/want - 1; math.Abs(off) > 0.05 {
				t.Errorf("%s: of %v below is %.5f s, and clients measured %.5f: %.1f %% off", where, one.q, got, want, 100*off)
			}
		}
	}
}

// onDashboard is what histogram_quantile makes of the page.
func onDashboard(families []*obs.Family, q float64) float64 {
	for _, f := range families {
		if f.GetName() != "topsail_gateway_query_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		rank, below, lower := q*float64(h.GetSampleCount()), 0.0, 0.0
		for _, b := range h.GetBucket() {
			upTo := float64(b.GetCumulativeCount())
			if upTo >= rank {
				return lower + (b.GetUpperBound()-lower)*(rank-below)/(upTo-below)
			}
			below, lower = upTo, b.GetUpperBound()
		}
	}
	return math.NaN()
}

// oneApp is a catalog of an app with an objective, and without models.
type oneApp time.Duration

func (o oneApp) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	app := &serving.App{Name: "app", InputType: serving.Doubles, DefaultOutput: "0", SLO: serving.Duration(o)}
	update(&serving.Catalog{Revision: 1, Apps: map[string]*serving.App{"app": app}})
	<-ctx.Done()
	return ctx.Err()
}
