package load

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm waits for points in time. In an idle process the runtime's own timers go
// off up to a millisecond late, which would pass for latency of the server; a
// timerfd is late by some tens of microseconds. One goroutine waits at a time.
type alarm struct {
	fd   int // of file, whose Fd method would make it block
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: make a timer: %w", err)
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// wait says whether the time has come; it has not when the alarm is interrupted.
func (a *alarm) wait(until time.Time) bool {
	left := time.Until(until)
	if left <= 0 {
		return true
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
	if unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		return false
	}
	var expirations [8]byte
	_, err := a.file.Read(expirations[:])
	return err == nil
}

// interrupt ends the wait in progress and all later ones.
func (a *alarm) interrupt() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) }

// close frees the alarm; nothing may wait any more.
func (a *alarm) close() { a.file.Close() }
