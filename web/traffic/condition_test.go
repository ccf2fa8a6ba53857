package traffic_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/traffic"
)

// TestConditions are those of processes that were read lately.
func TestConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newProcess(), newProcess()
		for i, p := range []*process{one, other} {
			lag := p.reg.Gauges("topsail_stream_lag_records", "Lag.", "stream")
			lag.WithLabelValues("wine").Set(float64(10 * (i + 1)))
			lag.WithLabelValues("pets").Set(math.NaN())
			p.reg.Gauges("topsail_stream_waiting_seconds", "Waiting.", "stream").WithLabelValues("wine").Set(float64(40 * i))
			condition := p.reg.Gauges("topsail_stream_condition", "Condition.", "stream", "condition")
			condition.WithLabelValues("wine", "cannot consume from the broker").Set(0)
			condition.WithLabelValues("pets", "cannot commit results").Set(1)
			stopped := p.reg.Gauges("topsail_selection_withdrawn", "Withdrawn.", "app", "model", "version")
			stopped.WithLabelValues("shop", "m", "3").Set(1) // as both gateways know
			stopped.WithLabelValues("wine", "m", "3").Set(0)
			p.reg.Gauges("topsail_gateway_failover", "Failover.", "model", "version").WithLabelValues("m", "2").Set(float64(i))
		}
		other.reg.Gauges("topsail_model_stream_lag_records", "Lag.", "stream").WithLabelValues("models").Set(0)
		c := traffic.New(traffic.Config{Targets: func() []traffic.Target {
			return []traffic.Target{{Role: traffic.Gateway, Name: "one", Source: one}, {Role: traffic.Gateway, Name: "other", Source: other}}
		}})
		go c.Run(t.Context())
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		streams := c.Streams()
		wine, pets, models := streams["wine"], streams["pets"], streams["models"]
		if len(streams) != 3 || wine.Processes != 2 || *wine.Lag != 20 || wine.Waiting != 40 || len(wine.Conditions) != 0 {
			t.Errorf("wine is %+v", wine)
		}
		if pets.Lag != nil || !slices.Equal(pets.Conditions, []string{"cannot commit results"}) || *models.Lag != 0 || models.Processes != 1 {
			t.Errorf("pets is %+v, and models %+v", pets, models)
		}
		if failed := c.FailedOver(); !slices.Equal(failed, []serving.ModelID{{Model: "m", Version: "2"}}) {
			t.Errorf("failed over: %v", failed)
		}
		if withdrawn := c.Withdrawn(); !slices.Equal(withdrawn, []api.Withdrawn{{App: "shop", Version: serving.ModelID{Model: "m", Version: "3"}}}) {
			t.Errorf("withdrawn: %v", withdrawn)
		}
		other.restart()
		one.mu.Lock()
		one.fails = errAway
		one.mu.Unlock()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if streams := c.Streams(); len(streams) != 0 || len(c.FailedOver()) != 0 || len(c.Withdrawn()) != 0 {
			t.Errorf("of processes that are gone there is %+v", streams)
		}
	})
}
