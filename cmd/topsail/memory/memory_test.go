package memory

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func unlimited() (uint64, error) { return 0, memlimit.ErrNoLimit }
func unknown() (uint64, error)   { return 0, errors.New("nobody knows") }

func TestAvailable(t *testing.T) {
	for _, tt := range []struct {
		name           string
		cgroup, system memlimit.Provider
		want           uint64 // 0: unknown
	}{
		{"a cgroup", memlimit.Limit(2 << 30), memlimit.Limit(16 << 30), 2 << 30},
		{"a cgroup that allows more than there is", memlimit.Limit(1 << 60), memlimit.Limit(16 << 30), 16 << 30},
		{"no limit", unlimited, memlimit.Limit(16 << 30), 16 << 30},
		{"no cgroup", unknown, memlimit.Limit(16 << 30), 16 << 30},
		{"only a cgroup", memlimit.Limit(2 << 30), unknown, 2 << 30},
		{"nothing", unknown, unknown, 0},
	} {
		if got, err := less(tt.cgroup, tt.system); got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("%s: %d, %v", tt.name, got, err)
		}
	}
	if got, err := Available(); err != nil || got < 64<<20 || got > 1<<50 {
		t.Errorf("here it is %d, %v", got, err)
	}
}

// A quarter is for requests and answers, unless somebody says how much.
func TestShare(t *testing.T) {
	for _, tt := range []struct {
		name       string
		configured int
		memory     memlimit.Provider
		want       int64
	}{
		{"a quarter", 0, memlimit.Limit(2 << 30), 512 << 20},
		{"configured", 64 << 20, memlimit.Limit(2 << 30), 64 << 20},
		{"unknown", 0, unknown, 256 << 20},
		{"none", 0, memlimit.Limit(0), 256 << 20},
		{"beyond reason", 0, memlimit.Limit(math.MaxUint64), 1 << 60},
	} {
		if got := Share(tt.configured, tt.memory); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// What somebody set in GOMEMLIMIT holds, and nine tenths of the memory else.
func TestLimit(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	t.Setenv("GOMEMLIMIT", "") // so that it is as it was in the end
	os.Unsetenv("GOMEMLIMIT")
	for _, tt := range []struct {
		name   string
		memory memlimit.Provider
		want   int64
	}{
		{"known", memlimit.Limit(10 << 30), 9 << 30}, {"unknown", unknown, was},
	} {
		debug.SetMemoryLimit(was)
		if Limit(tt.memory); debug.SetMemoryLimit(-1) != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, debug.SetMemoryLimit(-1), tt.want)
		}
	}
	t.Setenv("GOMEMLIMIT", "5GiB")
	debug.SetMemoryLimit(5 << 30) // as the runtime does
	if Limit(memlimit.Limit(10 << 30)); debug.SetMemoryLimit(-1) != 5<<30 {
		t.Errorf("what was set is %d", debug.SetMemoryLimit(-1))
	}
}

func TestHeadroom(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for limit, want := range map[int64]int{math.MaxInt64: 64 << 20, 14 << 30: 64 << 20, 128 << 20: 8 << 20} {
		debug.SetMemoryLimit(limit)
		if got := len(Headroom()); got != want {
			t.Errorf("of %d: %d, want %d", limit, got, want)
		}
	}
}
