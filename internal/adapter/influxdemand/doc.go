// Package influxdemand keeps demand in InfluxDB: 1.8 with Flux enabled, or 2.x.
//
// Writers put reports into a bounded ring and never wait; Run flushes it. What a
// reader needs of one source and second is in one point, so that a report is there
// whole or not at all. The figures are there once more, as a field each, for people
// and dashboards. docs/adr/0008-demand.md has the schema and its reasons.
package influxdemand
