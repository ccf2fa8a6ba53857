// Package deploy holds what watches Topsail: a dashboard for Grafana, and for
// Prometheus what to scrape and when to raise an alarm. Its tests hold these files
// and their pages in docs to the metrics that processes really have.
package deploy
