// Package leader elects one of several processes to act, by a lock with a lease.
//
// The leader trusts its term only until its last successful renewal plus the
// lease's time to live less a margin, by its own clocks; no other can have the
// lock by then. What it does must check the term before each side effect and carry
// the term's fence, which is greater in every later term, to where it is compared:
// a process that was frozen between check and effect is refused there.
//
// An Elector runs in one goroutine, which renews the lease beside the goroutine of
// the leader's work; Run ends when both have.
package leader
