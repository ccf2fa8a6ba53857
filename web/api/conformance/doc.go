// Package conformance holds the requests and answers of the API to its contract: status,
// type and schema of each. It holds tests only.
package conformance
