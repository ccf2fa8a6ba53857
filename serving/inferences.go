package serving

import "time"

// Inferences are what the queries of an app came to at one gateway.
type Inferences struct {
	Succeeded uint64        // got a prediction
	Defaults  uint64        // got a default
	Cached    uint64        // of the requests to models, those answered from the cache or by an equal one
	Asked     uint64        // of these, those that went to a replica
	Took      time.Duration // all answers together
}
