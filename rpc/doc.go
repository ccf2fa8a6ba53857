// Package rpc is version 2 of Topsail's protocol: frames, their codec, and
// multiplexed connections. docs/protocol.md describes the bytes.
//
// Encoding appends to a buffer; decoding walks one. A decoded frame points into
// the buffer that it was read into and is valid until the handler returns;
// a caller that keeps something copies it, or takes the frame if that is large. Large
// payloads are not copied into frames, but sent from where they are, and between two parts
// of one process (Local) handed over. No decoder trusts a length or a count: every
// error is a *ProtocolError that names the field and where in the body reading stopped.
package rpc
