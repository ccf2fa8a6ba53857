package traffic

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
)

// Role is what a process does, and so what is read from it, and how often.
type Role string

const (
	Gateway   Role = "gateway"   // every second
	Scheduler Role = "scheduler" // every 2 s
	Sidecar   Role = "sidecar"   // every 10 s, since there may be thousands
	Local     Role = "local"     // all in one, every second
)

// Target is a process whose metrics are read. Its name is its own among those of its
// role, and stays when the process is started anew.
type Target struct {
	Role   Role
	Name   string
	Source Source
}

// Source is where the metrics of a process are.
type Source interface {
	// Read has readers read the series of their metrics. What was read before an error is void.
	Read(ctx context.Context, readers obs.Readers) error
}

// every is how long there is from one look to the next.
func (r Role) every() time.Duration {
	switch r {
	case Scheduler:
		return 2 * time.Second
	case Sidecar:
		return 10 * time.Second
	}
	return time.Second
}

// due says whether the target's turn is in a second. Targets of one role are spread
// over the seconds of their interval.
func (t Target) due(second int64) bool {
	every := int64(t.Role.every() / time.Second)
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name)) // a hash takes everything
	return (second+int64(name.Sum32()))%every == 0
}
