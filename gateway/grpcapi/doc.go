// Package grpcapi is the gateway's port for gRPC: the Open Inference Protocol, which clients of Triton,
// KServe and others speak, health checks and reflection. What a request means is decided by package
// inference, and who may ask by package admission, as for the query port over HTTP.
package grpcapi
