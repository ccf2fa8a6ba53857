// Package influxdb keeps demand, decisions and metrics in InfluxDB: 1.8 with Flux enabled, or 2.x.
//
// Writers put reports into bounded rings, one for demand and one for metrics, and never wait; Run flushes them. What a
// reader needs of one source and second is in one point, so that a report is there
// whole or not at all. The figures are there once more, as a field each, for people
// and dashboards. docs/adr/0008-demand.md has the schema of demand and its reasons, and docs/adr/0049-metrics-influxdb.md
// those of metrics.
package influxdb
