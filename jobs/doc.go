// Package jobs makes the Nomad job of a model version, of the structs of Nomad's API: every text of a version is
// in it as it is. What runs it is in internal/adapter/nomadfleet; why it looks as it does is in docs/adr/0009-jobs.md.
package jobs
