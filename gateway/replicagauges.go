package gateway

import (
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/obs"
)

var (
	inFlightDesc  = obs.NewDesc("topsail_gateway_replica_in_flight", "Queries of this gateway in flight at the replica.", "replica")
	latencyDesc   = obs.NewDesc("topsail_gateway_replica_latency_seconds", "Moving average of the replica's answers.", "replica")
	connectedDesc = obs.NewDesc("topsail_gateway_replica_connected", "1 while the gateway is connected to the replica.", "replica")
	ejectedDesc   = obs.NewDesc("topsail_gateway_replica_ejected", "1 while the replica gets no queries because it failed.", "replica")
)

// replicaGauges reads the routing table when metrics are asked for.
type replicaGauges struct{ table *route.Table }

// Describe and Collect implement obs.Collector.
func (g replicaGauges) Describe(ch chan<- *obs.Desc) {
	for _, d := range []*obs.Desc{inFlightDesc, latencyDesc, connectedDesc, ejectedDesc} {
		ch <- d
	}
}

func (g replicaGauges) Collect(ch chan<- obs.Metric) {
	for _, s := range g.table.Replicas() {
		gauge := func(d *obs.Desc, v float64) {
			// A replica's name that cannot be a label is left out.
			if m, err := obs.GaugeOf(d, v, s.Replica); err == nil {
				ch <- m
			}
		}
		gauge(inFlightDesc, float64(s.InFlight))
		gauge(latencyDesc, s.Latency.Seconds())
		gauge(connectedDesc, flag(s.Connected))
		gauge(ejectedDesc, flag(s.Ejected))
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
