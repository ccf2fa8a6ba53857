// Package harness is a whole cluster for tests and measurements: the real servers, Topsail
// on them as Nomad jobs, and clients under steady load that remember what they saw.
package harness
