//go:build !linux

package load

import (
	"sync"
	"time"
)

// alarm waits for points in time, as precisely as the runtime's timers.
type alarm struct {
	interrupted chan struct{}
	interrupt   func()
}

func newAlarm() (*alarm, error) {
	done := make(chan struct{})
	return &alarm{interrupted: done, interrupt: sync.OnceFunc(func() { close(done) })}, nil
}

// wait says whether the time has come; it has not when the alarm is interrupted.
func (a *alarm) wait(until time.Time) bool {
	left := time.Until(until)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.interrupted:
		return false
	}
}

func (a *alarm) close() {}
