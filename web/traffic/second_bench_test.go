package traffic

import (
	"context"
	"fmt"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// BenchmarkSecond is what the charts cost a process each second: one with a gateway whose apps have
// all been asked before, of which some are asked now.
func BenchmarkSecond(b *testing.B) {
	for _, c := range []struct {
		apps, active int
		page         bool // over HTTP
	}{{30, 0, false}, {3000, 0, false}, {3000, 100, false}, {30, 0, true}, {3000, 0, true}} {
		b.Run(fmt.Sprintf("%d apps, %d active, over HTTP %t", c.apps, c.active, c.page), func(b *testing.B) {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			reg := obs.NewRegistry()
			g := gateway.New(ctx, gateway.Config{Name: "g", Catalog: manyApps(c.apps), Resolver: noReplicas{}, CacheBytes: 1 << 20, Metrics: reg})
			ended := make(chan struct{})
			go func() { defer close(ended); _ = g.Run(ctx, nil) }()
			defer func() { stop(); <-ended }()
			ask := func(apps int) {
				for i := range apps {
					q := serving.Query{App: appName(i), Input: serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}, Received: time.Now()}
					for _, err := g.Predict(ctx, q); err != nil; _, err = g.Predict(ctx, q) {
						time.Sleep(time.Millisecond) // there is no catalog yet
					}
				}
			}
			ask(c.apps)
			target := Target{Role: Local, Name: "here", Source: Process{reg}}
			if c.page {
				server := httptest.NewServer(reg.Handler())
				defer server.Close()
				target = Target{Role: Gateway, Name: "there", Source: Page{URL: server.URL, Client: server.Client()}}
			}
			collector := New(Config{Targets: func() []Target { return []Target{target} }})
			b.ReportAllocs()
			spent := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				ask(c.active)
				began := cpu()
				b.StartTimer()
				for _, w := range collector.due(time.Now()) {
					collector.look(ctx, w)
				}
				spent += cpu() - began
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/op")
			if got := len(collector.apps); got != c.apps {
				b.Fatalf("%d apps", got)
			}
		})
	}
}

// cpu is the time that the process has had of all cores, which other processes do not prolong.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func appName(i int) string { return fmt.Sprint("application-", i) }

// manyApps is a catalog of so many apps, without models.
type manyApps int

func (n manyApps) Watch(ctx context.Context, update func(*serving.Catalog)) error {
	cat := &serving.Catalog{Revision: 1, Apps: map[string]*serving.App{}}
	for i := range int(n) {
		cat.Apps[appName(i)] = &serving.App{Name: appName(i), InputType: serving.Doubles, DefaultOutput: "0", SLO: serving.Duration(100 * time.Millisecond)}
	}
	update(cat)
	<-ctx.Done()
	return ctx.Err()
}

type noReplicas struct{}

func (noReplicas) Watch(ctx context.Context, _ func([]serving.Endpoint)) error {
	<-ctx.Done()
	return ctx.Err()
}
