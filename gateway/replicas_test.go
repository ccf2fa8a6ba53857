package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/serving"
)

// TestThreeReplicasAnswerThreeTimesAsMuch as one does, when more is asked than they can answer.
func TestThreeReplicasAnswerThreeTimesAsMuch(t *testing.T) {
	one, three := perSecond(t, 1), perSecond(t, 3)
	t.Logf("%.1f and %.1f answers a second", one, three)
	if one < 95 || one > 101 || three < 2.95*one {
		t.Errorf("one replica answers %.1f a second, of the 100 that it can, and three answer %.1f", one, three)
	}
}

// perSecond is what replicas answer that take 10 ms for each input.
func perSecond(t *testing.T, replicas int) (rate float64) {
	bubble(t, func(t *testing.T, on network, _ *http.Client) {
		all, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		v := newVersion("m", "1")
		registry := inprocess.NewRegistry()
		for i := range replicas {
			registry.Put(startReplica(all, &running, on, fmt.Sprintf("m/%d", i), v, func(inputs []serving.Value) []gocontainer.Result {
				time.Sleep(time.Duration(len(inputs)) * 10 * time.Millisecond)
				return double(inputs)
			}))
		}
		cat := catalogOf(v)
		cat.Apps["double-it"].SLO = serving.Duration(30 * time.Second)
		g := gateway.New(all, gateway.Config{Dial: on.dial, Name: "test", Catalog: fixed{cat}, Resolver: registry})
		running.Go(func() { _ = g.Run(all, nil) })
		eventually(t, func() bool { return len(g.Replicas()) == replicas && len(g.Replicas()[replicas-1].Models) == 1 })
		var answered atomic.Int64
		asking, enough := context.WithCancel(all)
		var askers sync.WaitGroup
		for i := range 8 * replicas {
			askers.Go(func() {
				for n := 0; asking.Err() == nil; n++ {
					p, err := predict(all, g, serving.Query{App: "double-it", Input: input(float64(1000*n + i)), Received: time.Now()})
					if err != nil || p.Default {
						t.Errorf("%v %s, %v", p.Cause, p.Explanation, err)
					}
					answered.Add(1)
				}
			})
		}
		time.Sleep(2 * time.Second) // while batches find their size
		before := answered.Load()
		const measured = 20 * time.Second
		time.Sleep(measured)
		rate = float64(answered.Load()-before) / measured.Seconds()
		enough()
		askers.Wait()
	})
	return rate
}

// TestABrokenCanaryIsTakenBack: its failures end it, clients get answers of the current version from
// then on, and the log says why.
func TestABrokenCanaryIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, on network, _ *http.Client) {
		all, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		good, bad := newVersion("m", "1"), newVersion("m", "2")
		var failures atomic.Int64
		registry := inprocess.NewRegistry()
		registry.Put(startReplica(all, &running, on, "m/0", good, double))
		registry.Put(startReplica(all, &running, on, "m/1", bad, func(inputs []serving.Value) []gocontainer.Result {
			results := make([]gocontainer.Result, len(inputs))
			for i := range results {
				results[i].Err = errors.New("broken")
			}
			failures.Add(int64(len(results)))
			return results
		}))
		cat := catalogOf(good)
		cat.Models["m"].Versions["2"] = bad
		cat.Apps["double-it"].Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: "2", Share: 0.2}
		var log bytes.Buffer
		g := gateway.New(all, gateway.Config{
			Dial: on.dial, Name: "test", Catalog: fixed{cat}, Resolver: registry, States: &oneState{}, Records: inprocess.NewRecords(),
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		running.Go(func() { _ = g.Run(all, nil) })
		eventually(t, func() bool { return len(g.Replicas()) == 2 && len(g.Replicas()[1].Models) == 1 })
		ask := func(n int) serving.Prediction {
			p, err := predict(all, g, serving.Query{App: "double-it", Input: input(float64(n)), User: fmt.Sprint(n), Received: time.Now()})
			if err != nil || p.Default || string(p.Output) != fmt.Sprintf("%d.0", 2*n) {
				t.Fatalf("a client notices: %+v, %v", p, err)
			}
			time.Sleep(10 * time.Millisecond)
			return p
		}
		for n := range 2000 {
			ask(n)
		}
		seen := failures.Load()
		if seen == 0 || seen > 50 {
			t.Fatalf("the canary failed %d times before it was taken back", seen)
		}
		for n := range 500 {
			if p := ask(2000 + n); p.Model.Version != "1" {
				t.Fatalf("after %d failures: %+v", seen, p)
			}
		}
		if failures.Load() != seen {
			t.Errorf("the canary is still asked: %d failures, then %d", seen, failures.Load())
		}
		stop()
		running.Wait()
		if text := log.String(); !strings.Contains(text, "version 2 was stopped") {
			t.Errorf("logged: %s", text)
		}
	})
}
