package jobs

import "time"

// How a replica ends: its service is taken back, ShutdownDelay later its container
// is asked to end, and when that has ended, its sidecar.
const (
	propagation   = 2 * time.Second  // until every gateway has heard that the service is gone
	longestDelay  = 30 * time.Second // for answers in parts there is the kill_timeout, which ends with the last of them
	mostOfClients = 30 * time.Second // Nomad's clients allow no longer kill_timeout, unless told to
)

// ShutdownDelay is how long a replica goes on serving after its service was taken
// back: gateways hear of it, and what they had asked before that is answered.
func ShutdownDelay(slo time.Duration) time.Duration { return min(propagation+slo, longestDelay) }

// KillTimeout is how long a task may take to end.
func KillTimeout(s Settings) time.Duration { return s.defaults().KillTimeout }
