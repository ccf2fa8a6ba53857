package serving

import (
	"errors"
)

// Job is how the replicas of one model version are doing, as the system that runs them sees it.
type Job struct {
	ModelID
	Count     int    // replicas asked for
	Running   int    // replicas whose processes run
	Index     uint64 // grows with every change of the job
	Blocked   string // why the count cannot be changed now; empty: it can
	Problem   string // why fewer run than were asked for, in words for people; empty while they only start
	Outdated  bool   // it was made by an older release or with other settings than would make it now
	Redefined bool   // it was made of the version as that was before; its replicas may no longer be asked
}

// JobChange asks for a number of replicas.
type JobChange struct {
	Count  int
	Index  uint64 // of the Job that was looked at, 0 for none; a job that has changed since is left alone
	Reason string // for readers of the job's history
}

var (
	// ErrJobBlocked says that a job cannot be changed now; nothing was changed.
	ErrJobBlocked = errors.New("the job cannot be changed now")
	// ErrJobChanged says that the job is not as it was looked at; nothing was changed.
	ErrJobChanged = errors.New("the job has changed in the meantime")
	// ErrJobRefused says that the job cannot be as asked for; a retry cannot succeed.
	ErrJobRefused = errors.New("the job is refused")
)

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
