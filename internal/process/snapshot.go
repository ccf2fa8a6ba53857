//go:build unix

package process

import "time"

// State is where a Child stands.
type State uint8

const (
	Stopped    State = iota // Run has not begun, or is over
	Starting                // the guard is being started
	Running                 // the command is running
	BackingOff              // the command ended and is started again after a wait
)

func (s State) String() string {
	return [...]string{"stopped", "starting", "running", "backing off"}[s]
}

// Snapshot is what is known of a Child at one moment.
type Snapshot struct {
	State    State
	Since    time.Time // when State began
	PID      int       // of the command, and its process group; 0 unless Running
	Restarts int       // starts after the first one, those asked for included
	Reason   string    // why the last run ended: "exit status 1: " and what it said, "killed by signal SIGKILL", "cannot start: ..."; "" before
}
