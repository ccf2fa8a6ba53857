// Package batch forms batches and has containers run them, with a size that follows the latency objective.
//
// A Container is what the models of one container share: it has a turn for one batch at a time. A Batcher is one of
// these models, with a queue that it may share with other containers. When a container is free, it gives its turn to
// the model whose first query is due first; that lets its queue form the largest batch that makes its deadline, and
// the run tells the sizer and the profile how it went. Where it pays, a batch waits a moment to fill.
//
// There is no loop: Wake, the end of a batch and a timer start what can start by then.
package batch
