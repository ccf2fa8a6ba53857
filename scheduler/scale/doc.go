// Package scale decides how many replicas a model version shall have.
//
// Decide is a pure function: of what is asked of the version, how its job is doing,
// what its people want, the time, and the State that it returned the last time.
// Its words are Knative's: a stable window and a panic window, a target
// utilisation, limits to one step, an idle time before zero. docs/scheduler.md
// says where it differs, and why.
package scale
