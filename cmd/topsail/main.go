// Command topsail serves machine-learning models under a latency promise. Each
// role is a subcommand.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/topsail-serving/topsail/cmd/topsail/admin"
	"github.com/topsail-serving/topsail/cmd/topsail/memory"
	"github.com/topsail-serving/topsail/internal/process"
)

func main() {
	// The guard of a child process knows nothing of the rest.
	if len(os.Args) > 2 && os.Args[1] == "guard" && os.Args[2] == "--" {
		os.Exit(process.RunGuard(os.Args[3:]))
	}
	memory.Limit(memory.Available)
	headroom := memory.Headroom()
	defer runtime.KeepAlive(headroom)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once, if draining takes too long for it.
	context.AfterFunc(ctx, stop)
	if status := admin.Exit(rootCommand().ExecuteContext(ctx), os.Stderr); status != 0 {
		stop()
		os.Exit(status)
	}
}
