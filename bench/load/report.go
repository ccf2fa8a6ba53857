package load

import "time"

// ErrorKind is how a request that was sent failed to be answered.
type ErrorKind string

const (
	NotConnected ErrorKind = "not connected" // the connection could not be made again
	TimedOut     ErrorKind = "timed out"
	Closed       ErrorKind = "closed" // the server closed the connection
	Reset        ErrorKind = "reset"  // the server reset the connection
	NotHTTP      ErrorKind = "not http"
	Canceled     ErrorKind = "canceled" // the run was
)

// Report is what came of a run. Sent is Answered plus all Errors.
type Report struct {
	Sent     int
	Unsent   int // given up: no connection became free within the timeout
	Queued   int // sent late because all connections were busy when they were due
	Answered int // whole replies, of any status
	Good     int // answered with status 200 and without a default

	Errors   map[ErrorKind]int
	Statuses map[int]int
	Defaults map[string]int // replies with a default, by their (first) explanation

	Elapsed time.Duration // from the start to the last answer, at least the duration
	Rate    float64       // answered per second
	Goodput float64       // good per second

	Latency  Quantiles // of answers, from when the request was due
	Lateness Quantiles // of sends, as far as the generator itself is to blame
}

// Quantiles of a distribution, to three digits.
type Quantiles struct {
	P50, P90, P99, P999, Max time.Duration
}
