//go:build unix

package process

import "time"

// maxLinesPerSecond is how many lines of one command reach slog in a second. The
// log file has them all.
const maxLinesPerSecond = 200

// rateBound counts lines in windows of one second, each begun by its first line.
type rateBound struct {
	window time.Time
	passed int
	missed int
}

// allow says whether a line may pass now. It also hands over how many did not
// in windows that are over.
func (r *rateBound) allow(now time.Time) (pass bool, missed int) {
	if now.Sub(r.window) >= time.Second {
		r.window, r.passed = now, 0
		missed = r.takeMissed()
	}
	if r.passed >= maxLinesPerSecond {
		r.missed++
		return false, 0
	}
	r.passed++
	return true, missed
}

func (r *rateBound) takeMissed() int {
	n := r.missed
	r.missed = 0
	return n
}
