//go:build edge

package edge

import "testing"

// TestPlain attacks a server as it comes.
func TestPlain(t *testing.T) {
	start(t, "", false).sufferAll(t, append(distinct(),
		announced(200, "nobody", 404), announced(800, "nobody", 404), announced(200, "target", 408), announced(800, "target", 408),
		slowHeaders(), slowBodies(), largeBodies(), bombs(), deep(),
		unread(), slowReaders(), pipelined(),
		halfClosed(), vanishing(),
		silent(), busyAndIdle(),
		otherPort("management", func(s *server) string { return s.web }, "/api/v1/apps"),
		otherPort("operators'", func(s *server) string { return s.ops }, "/health/live"),
	)...)
}

// TestTLS attacks one that speaks TLS.
func TestTLS(t *testing.T) { start(t, "", true).sufferAll(t, handshakes(), shaking()) }

// TestBounds attacks one that has a bound for each address.
func TestBounds(t *testing.T) {
	start(t, "max_connections_per_address = 10", false).sufferAll(t, addresses(10))
}

// TestDoors attacks the doors for other protocols: answers in parts, OpenAI's API, and the Open
// Inference Protocol over HTTP and gRPC.
func TestDoors(t *testing.T) {
	start(t, `grpc_addr = "127.0.0.1:0"`, false, doors()).sufferAll(t,
		heavy(), droppedStreams(), unreadStreams(), droppedCalls(), unreadCalls(), noHTTP2(),
	)
}
