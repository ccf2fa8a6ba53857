// Package memory says how much memory a process may have, and holds Go to it.
package memory

import (
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Available is how many bytes this process may have: what its cgroup allows, if that is less
// than what the machine has.
func Available() (uint64, error) { return less(memlimit.FromCgroup, memlimit.FromSystem) }

func less(cgroup, system memlimit.Provider) (uint64, error) {
	machine, err := system()
	limit, without := cgroup()
	switch {
	case without != nil:
		return machine, err
	case err != nil || machine == 0:
		return limit, nil
	}
	return min(limit, machine), nil
}

// Limit has Go collect in time for so much memory, less a tenth for what it does not know of,
// unless GOMEMLIMIT says otherwise. Where the memory is unknown, Go does as it always does.
func Limit(available func() (uint64, error)) {
	_, _ = memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(0.9), memlimit.WithProvider(available))
}

// mostHeadroom is enough for the collector to take next to no time.
const mostHeadroom = 64 << 20

// Headroom lets garbage grow by so many bytes more before Go collects it, for as long as the caller keeps it: a small
// process at work would else collect many times a second. It is a small part of what Limit or GOMEMLIMIT allow, which it
// counts towards, and is never written to, so that it takes no memory by itself.
func Headroom() []byte { return make([]byte, min(debug.SetMemoryLimit(-1)/16, mostHeadroom)) }

// Share is so many bytes, or else a quarter of what is available.
func Share(configured int, available func() (uint64, error)) int64 {
	if configured > 0 {
		return int64(configured)
	}
	bytes, err := available()
	if err != nil || bytes == 0 {
		return 256 << 20
	}
	return int64(min(bytes, 1<<62)) / 4
}
