// Package httpapi is the query port: queries and feedback in, predictions out. It is
// the only part of the gateway that knows HTTP, and the only one that imports Fiber
// and fasthttp.
//
// Three rules keep the request path safe, because fasthttp reuses its buffers:
// whatever reaches the Core owns its memory; bodies are read raw and
// inflated here, under the limit that is set for bodies; and the text of an error
// that is not meant for clients goes to the log only, with the request id that
// the client is told.
//
// Who may ask, and how often, the catalog says, beside the keys of a file: Serve makes
// an admission of it, which requests look things up in without locks.
//
// What a caller may ask it can read at GET /openapi.json, which is made for each request
// from the same catalog.
//
// A valid X-Request-Id is echoed on every answer. No other id is made until one
// is needed, which is when something is logged.
package httpapi
