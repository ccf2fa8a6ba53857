// Command cluster runs a whole Topsail on this machine, for developing and for
// trying things: Consul, Nomad with two clients, Redis and InfluxDB, and on them
// gateway, scheduler, management and the demo's models as Nomad jobs.
//
//	cluster up      start everything and wait until a query is answered
//	cluster down    stop everything and leave nothing behind
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	o := options{}
	flags.StringVar(&o.dir, "dir", "build/cluster", "folder for data and logs")
	flags.StringVar(&o.program, "topsail", "bin/topsail", "the topsail program")
	flags.StringVar(&o.config, "config", "examples/demo/topsail.toml", "the apps and models to deploy")
	flags.IntVar(&o.offset, "offset", 0, "added to every port")
	if len(args) == 0 {
		return errors.New("say what to do: up or down")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := o.absolute(); err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return up(ctx, o)
	case "down":
		return down(ctx, o)
	}
	return fmt.Errorf("%q is unknown: say up or down", args[0])
}
