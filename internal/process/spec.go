//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	defaultGrace    = 10 * time.Second
	defaultLogLimit = 10 << 20
)

// Spec says what to run. A Child takes it as it is and never changes it.
type Spec struct {
	Name     string         // of the replica, in logs
	Argv     []string       // the command, looked up in PATH, and its arguments
	Dir      string         // working directory; "" is the parent's
	Env      []string       // "KEY=value", added to the parent's environment and stronger than it
	LogFile  string         // takes the command's output; "" keeps no file
	LogLimit int64          // bytes after which LogFile becomes LogFile + ".1"; 0 is 10 MiB
	Grace    time.Duration  // from SIGTERM to SIGKILL; 0 is 10 s
	OnChange func(Snapshot) // called by Run after each change, in order; must not block; may be nil
}

func (s Spec) withDefaults() Spec {
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	if s.LogLimit == 0 {
		s.LogLimit = defaultLogLimit
	}
	return s
}

// check finds what would otherwise come back as an error about the guard.
func (s Spec) check() error {
	if len(s.Argv) == 0 {
		return errors.New("the command is missing: name one")
	}
	if s.Dir == "" {
		return nil
	}
	info, err := os.Stat(s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("working directory %q does not exist: create it or name another", s.Dir)
	case err != nil:
		return fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("working directory %q is not a directory: name another", s.Dir)
	}
	return nil
}
