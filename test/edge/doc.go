// Package edge attacks a real Topsail in local mode, with the limits that the product comes
// with, as a client could that reaches its ports and has no key. Each attack has a steady
// client beside it, which asks another app, and must not notice: no error, no default, and a
// p99 within three times that of quiet, or twice that of a bare server which is asked at the same time; the heaviest
// may take it to half of its objective. The memory of the process stays within what it had
// and its budget, and memory, descriptors and goroutines are back within a minute.
//
// `make test-edge` runs all of it; the results are printed at the end. All connections are
// within 127.0.0.0/8, and the number and the time of everything is bounded.
package edge
