package api

import (
	"fmt"
	"math"
	"time"
)

// micros is a time in microseconds.
type micros int64

func microsOf(d time.Duration) micros { return micros(d.Microseconds()) }

// duration is the time, or an error that names the member, if it is longer than can be.
func (m micros) duration(member string) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Microsecond)
	if int64(m) > most || int64(m) < -most {
		return 0, invalid("%q must be at most %d", member, most)
	}
	return time.Duration(m) * time.Microsecond, nil
}

// durations reads several times, and keeps the first error.
type durations struct{ err error }

func (d *durations) read(m micros, format string, args ...any) time.Duration {
	t, err := m.duration(fmt.Sprintf(format, args...))
	if d.err == nil {
		d.err = err
	}
	return t
}
