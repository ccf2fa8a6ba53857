package serving

// Endpoint is where a replica's sidecar listens for gateways.
type Endpoint struct {
	Replica string // opaque and unique: the name of the replica
	Addr    string // host:port
	Token   []byte // shown to the sidecar; may be empty
}
