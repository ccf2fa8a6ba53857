// Package jobs makes the Nomad job of a model version: HCL from templates, with
// every text of a version quoted so that Nomad reads exactly that text. What runs
// it is in internal/adapter/nomadfleet; why it looks as it does is in docs/adr/0009-jobs.md.
package jobs
