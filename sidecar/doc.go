// Package sidecar is the process beside a model container. It takes queries from
// gateways, refuses at once what cannot make its deadline, orders the rest by
// deadline, forms batches that fit the latency objective, and runs them on the
// containers that connect to it or that it dials.
//
// A Pool belongs to one model version: its queue and the batchers of its
// containers. A query enters in gatewayConn.predict, is admitted or refused by
// Pool.submit, waits in queue.Queue, goes out when a batch.Container has a turn for it, and its answer returns to
// the connection that it came from.
package sidecar
