// Command figures measures what a cluster promises: the way from zero, a step of
// the load, rollouts, how changes spread, and what many versions cost. It runs a
// whole cluster on this machine for it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/test/harness"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often each thing is measured")
	only := flag.String("only", "zero,step,rollout,spread,many", "what to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *rounds, strings.Split(*only, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// bench is the cluster that is measured.
type bench struct {
	*harness.Rig
	rounds int
}

func run(ctx context.Context, rounds int, only []string) error {
	starting, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	fmt.Println("starting a cluster")
	r, err := harness.New(starting, 250*time.Millisecond, 3*time.Second)
	if r != nil {
		defer r.Close()
	}
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go r.FollowGateways(following)
	b := &bench{r, rounds}
	for _, name := range only {
		measure := map[string]func(context.Context) error{
			"zero": b.zero, "step": b.step, "rollout": b.rollout, "spread": b.spread, "many": b.many,
		}[name]
		if measure == nil {
			return fmt.Errorf("%q is unknown", name)
		}
		fmt.Printf("\n%s\n", name)
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
