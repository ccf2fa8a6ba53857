package traffic

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// busy is a gateway with 500 apps; answer has each of them asked once more.
func busy() (reg *obs.Registry, answer func()) {
	reg = obs.NewRegistry()
	answers := reg.Counters("topsail_gateway_answers_total", "Answers.", "app", "cause")
	took := reg.Histograms("topsail_gateway_query_seconds", "Times.", obs.Seconds(), "app")
	cache := reg.Counters("topsail_gateway_cache_total", "Questions.", "app", "result")
	objective := reg.Gauges("topsail_gateway_objective_seconds", "Objectives.", "app")
	return reg, func() {
		for i := range 500 {
			app := fmt.Sprintf("application-%d", i)
			for _, cause := range serving.Causes() {
				answers.WithLabelValues(app, cause.String()).Inc()
			}
			for _, result := range []string{"hit", "joined", "missed"} {
				cache.WithLabelValues(app, result).Inc()
			}
			took.WithLabelValues(app).Observe(float64(i) / 1000)
			objective.WithLabelValues(app).Set(0.1)
		}
	}
}

// pages serves a gateway's metrics as they were at ten moments, in turn, so that what a
// gateway does to make a page is not measured.
func pages(b *testing.B) http.Handler {
	reg, answer := busy()
	var all [][]byte
	for range 10 {
		answer()
		request := httptest.NewRequest("GET", "/metrics?"+query(), nil)
		request.Header.Set("Accept", obs.FamiliesType)
		w := httptest.NewRecorder()
		reg.Handler().ServeHTTP(w, request)
		all = append(all, w.Body.Bytes())
	}
	b.Logf("a page has %d KB", len(all[0])>>10)
	var next atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", obs.FamiliesType)
		_, _ = w.Write(all[next.Add(1)%10])
	})
}

// BenchmarkScrape500Apps is one round of looking at gateways with 500 apps that are all
// asked, one in this process or three over HTTP, and of showing them.
func BenchmarkScrape500Apps(b *testing.B) {
	b.Run("one here", func(b *testing.B) {
		reg, answer := busy()
		rounds(b, []Target{{Role: Local, Name: "here", Source: Process{reg}}}, answer)
	})
	b.Run("three over HTTP", func(b *testing.B) {
		var targets []Target
		for i := range 3 {
			server := httptest.NewServer(pages(b))
			defer server.Close()
			targets = append(targets, Target{Role: Gateway, Name: fmt.Sprint("g", i), Source: Page{URL: server.URL, Client: server.Client()}})
		}
		rounds(b, targets, func() {})
	})
}

func rounds(b *testing.B, targets []Target, before func()) {
	c := New(Config{Targets: func() []Target { return targets }})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		before()
		b.StartTimer()
		var looks sync.WaitGroup
		for _, w := range c.due(time.Now()) {
			looks.Go(func() { c.look(context.Background(), w) })
		}
		looks.Wait()
		c.Now()
	}
	if got := len(c.apps); got != 500 {
		b.Fatalf("%d apps", got)
	}
}
