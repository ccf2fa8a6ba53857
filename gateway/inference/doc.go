// Package inference is what the Open Inference Protocol, version 2, makes of apps: the names of element
// types, a model's inputs and outputs, the rows of a request, each of which is a query of its own, and
// the tensors of an answer. It knows neither REST nor gRPC, which carry the same.
package inference
