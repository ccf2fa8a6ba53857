package serving

// Endpoint is where a replica's sidecar listens for gateways.
type Endpoint struct {
	Replica string // opaque and unique: the name of the replica
	Addr    string // host:port
	Token   []byte // shown to the sidecar; may be empty

	// What follows is for programs that count replicas. A gateway asks the sidecar.
	Models []Definition // without a generation where it does not say
	Ready  bool         // its health check passes
	Ops    string       // host:port of its metrics and health; empty where it does not say
	Scheme string       // of both; empty where it does not say
}
