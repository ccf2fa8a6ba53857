package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"topsail/internal/rig"
)

// outage is how long a server is away: longer than every time to live.
var outage = flag.Duration("outage", 20*time.Second, "how long a server is away")

// cluster is what all faults happen to.
var cluster *world

// world is a rig, and what was seen of the faults so far.
type world struct {
	*rig.Rig
	mu      sync.Mutex // guards reports
	reports []rig.Report
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	r, err := rig.New(ctx)
	if r != nil {
		defer r.Close()
	}
	if err != nil {
		return 1, err
	}
	cluster = &world{Rig: r}
	code = m.Run()
	for _, one := range cluster.reports {
		fmt.Println(one)
	}
	return code, nil
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("signal %v to process %d: %v", sig, pid, err)
	}
}
