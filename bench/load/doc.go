// Package load sends HTTP requests at a rate that does not depend on the server:
// an open loop, for benchmarks of latency.
//
// The arrivals of a run are fixed by its seed. Each is sent when it is due, or as
// soon after as a connection is free, and its latency counts from when it was
// due. A stall of the server therefore shows up in every request that should have
// been sent meanwhile, not only in the few that were in flight.
//
// There is no queue: a schedule goes round between the senders, one per
// connection. The one that holds it waits for the next arrival, passes the
// schedule on and sends. When all are busy, arrivals wait by becoming overdue.
package load
