package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/gateway"
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
	bubble(t, func(t *world) {
		v := newVersion("m", "1")
		for i := range replicas {
			t.replicas.Put(t.replica(fmt.Sprintf("m/%d", i), v, func(inputs []serving.Value) []gocontainer.Result {
				time.Sleep(time.Duration(len(inputs)) * 10 * time.Millisecond)
				return double(inputs)
			}))
		}
		cat := catalogOf(v)
		cat.Apps["double-it"].SLO = serving.Duration(30 * time.Second)
		g, _ := t.gateway(t.ctx, nil, gateway.Config{Catalog: fixed{cat}})
		t.ready(g, replicas)
		var answered atomic.Int64
		asking, enough := context.WithCancel(t.ctx)
		var askers sync.WaitGroup
		for i := range 8 * replicas {
			askers.Go(func() {
				for n := 0; asking.Err() == nil; n++ {
					p, err := predict(t.ctx, g, serving.Query{App: "double-it", Input: input(float64(1000*n + i)), Received: time.Now()})
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
