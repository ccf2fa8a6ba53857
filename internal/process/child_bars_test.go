//go:build unix && bars

package process

import (
	"testing"
	"time"
)

func TestChildRestartEndsBackOff(t *testing.T) {
	s := supervise(t, Spec{Argv: sh("exit 1")})
	wait := func() time.Duration {
		ended := s.until(BackingOff)
		return s.until(Starting).Since.Sub(ended.Since)
	}
	for range 2 {
		wait()
	}
	const third = 640 * time.Millisecond // or more
	ended := s.until(BackingOff)
	s.Restart()
	if waited := s.until(Starting).Since.Sub(ended.Since); waited >= third {
		t.Errorf("started after %v in spite of Restart", waited)
	}
	if waited := wait(); waited >= third {
		t.Errorf("the wait after Restart is %v: not the first one again", waited)
	}
}
