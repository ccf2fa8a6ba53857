package route

import (
	"sync"
	"time"
)

const (
	ejectAfter = 3 // failures in a row
	ejectMin   = time.Second
	ejectMax   = 30 * time.Second
)

// health ejects a replica that fails repeatedly, and lets one query probe it from time to time
// until it answers.
type health struct {
	mu       sync.Mutex
	failures int           // in a row
	eject    time.Duration // how long the last ejection was; doubling
	until    time.Time     // ejected until then; zero: not ejected
	probing  bool          // a probe was let through in this ejection
}

// usable says whether the replica may be asked. For an ejected one whose time is
// over it says so once, for a probe, which the caller must then make. When nothing
// is heard of the probe, there is another after as long again.
func (h *health) usable(now time.Time) (ok, probe bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.IsZero() {
		return true, false
	}
	if now.Before(h.until) {
		return false, false
	}
	h.probing = true
	h.until = now.Add(h.eject)
	return true, true
}

// ejected says whether the replica is ejected.
func (h *health) ejected() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.until.IsZero()
}

// succeed takes the replica back into use.
func (h *health) succeed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.eject, h.until, h.probing = 0, 0, time.Time{}, false
}

// fail counts a failure and says whether it ejected the replica. The failures of
// questions that were in flight when it was ejected do not prolong that.
func (h *health) fail(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
	if h.failures < ejectAfter || now.Before(h.until) && !h.probing {
		return false
	}
	first := h.until.IsZero()
	h.eject = min(max(2*h.eject, ejectMin), ejectMax)
	h.until, h.probing = now.Add(h.eject), false
	return first
}
