// Package v1 is version 1 of the container protocol, from the side that dials:
// the wire format of Clipper's design, for containers that listen on TCP.
//
// One batch is in flight per connection. A request says its format and how many
// inputs it holds; the reply is one float64 per input and nothing else. There is
// no handshake, no request id and no error message, so the only answer to
// anything unexpected is to close the connection: a Client that has failed once
// stays closed, and no batch can read what an earlier one left behind.
//
// DecodeBatch and AppendReply are the container's half, for tests.
//
// The package builds on Unix systems only; see quiet.
package v1
