// Package conformance holds the requests and answers of the query port to the document that
// it serves of itself: status, type and schema of each. It holds tests only.
package conformance
