package gateway

import (
	"github.com/topsail-serving/topsail/internal/obs"
)

var (
	inFlightDesc  = obs.NewDesc("topsail_gateway_replica_in_flight", "Queries of this gateway in flight at the replica.", "replica")
	latencyDesc   = obs.NewDesc("topsail_gateway_replica_latency_seconds", "Moving average of the replica's answers.", "replica")
	connectedDesc = obs.NewDesc("topsail_gateway_replica_connected", "1 while the gateway is connected to the replica.", "replica")
	ejectedDesc   = obs.NewDesc("topsail_gateway_replica_ejected", "1 while the replica gets no queries because it failed.", "replica")
	withdrawnDesc = obs.NewDesc("topsail_selection_withdrawn", "1 while the app's policy has withdrawn a version that it tried; the log has the reason.", "app", "model", "version")
	failoverDesc  = obs.NewDesc("topsail_gateway_failover", "1 while the current version of a model has lost all ready replicas and an earlier version answers.", "model", "version")
)

// addGauges registers what is read when metrics are asked for.
func (g *Gateway) addGauges(r *obs.Registry) {
	r.GaugeFunc("topsail_gateway_cache_bytes", "Memory used by the prediction cache.", func() float64 { return float64(g.cache.Bytes()) })
	r.GaugeFunc("topsail_gateway_cache_entries", "Predictions in the cache.", func() float64 { return float64(g.cache.Len()) })
	r.GaugeFunc("topsail_gateway_cold_start_queue", "Requests that wait for a replica.", func() float64 { return float64(g.dispatch.Queued()) })
	r.GaugeFunc("topsail_gateway_in_flight", "Requests in flight that equal ones can join.", func() float64 { return float64(g.cache.Open()) })
	r.Add(g.writeReplicas, inFlightDesc, latencyDesc, connectedDesc, ejectedDesc)
	r.Add(g.writeWithdrawn, withdrawnDesc)
	r.Add(g.writeFailovers, failoverDesc)
}

func (g *Gateway) writeReplicas(to *obs.SeriesWriter) {
	for _, s := range g.table.Replicas() {
		to.Gauge(inFlightDesc, float64(s.InFlight), s.Replica)
		to.Gauge(latencyDesc, s.Latency.Seconds(), s.Replica)
		to.Flag(connectedDesc, s.Connected, s.Replica)
		to.Flag(ejectedDesc, s.Ejected, s.Replica)
	}
}

func (g *Gateway) writeWithdrawn(to *obs.SeriesWriter) {
	for app, tried := range g.Withdrawn() {
		for id, withdrawn := range tried {
			to.Flag(withdrawnDesc, withdrawn, app, id.Model, id.Version)
		}
	}
}

func (g *Gateway) writeFailovers(to *obs.SeriesWriter) {
	for id, failedOver := range g.FailedOver() {
		to.Flag(failoverDesc, failedOver, id.Model, id.Version)
	}
}
