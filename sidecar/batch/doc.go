// Package batch forms batches and sends them to one container, one at a time,
// with a size that follows the latency objective.
//
// A Batcher owns one container's side of a queue: it waits for items, gives the
// batch a moment to fill where that pays, lets the queue form the largest batch
// that makes its deadline, runs it, and tells the sizer and the profile how it
// went. Several batchers may share a queue.
package batch
