package route

import "context"

// Endpoint is where a replica's sidecar listens for gateways.
type Endpoint struct {
	Replica string // opaque and unique: the name of the replica
	Addr    string // host:port
	Token   []byte // shown to the sidecar; may be empty
}

// Resolver knows where replicas are.
type Resolver interface {
	// Watch calls update with the whole list, at once and then whenever it
	// changes, until ctx ends. When the source cannot be asked, the last list
	// stays good.
	Watch(ctx context.Context, update func([]Endpoint)) error
}
