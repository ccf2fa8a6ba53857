// Command bench measures what Topsail promises, as ratios inside one run: a figure
// by itself says more about the machine than about the program, but two that
// were measured in turn on the same two cores can be compared anywhere.
//
// It starts itself again in other roles (gateway, sidecar, container, and the bare
// servers they are compared with), each in a process of its own on the loopback
// interface, and drives them with wrk or with Topsail's own open-loop generator.
// Variants that are compared take turns, and every figure is a median over runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/topsail-serving/topsail/cmd/topsail/memory"
)

func main() {
	opt, err := parseOptions(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if opt.role != "" {
		headroom := memory.Headroom() // as the program itself does
		err = runRole(ctx, opt.role, opt.setup)
		runtime.KeepAlive(headroom)
	} else {
		err = run(ctx, opt)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the cases that were asked for and writes the report. A case that
// fails does not stop the others.
func run(ctx context.Context, opt options) error {
	if err := pinToCores(cores); err != nil {
		return err
	}
	b, err := newBench(opt)
	if err != nil {
		return err
	}
	defer b.close()
	report := report{Machine: thisMachine(), Options: opt}
	var failed []error
	for _, c := range opt.cases {
		b.say("%s: %s", c.name, c.about)
		figures, err := c.measure(ctx, b)
		b.family.stop() // whatever the case has started and not stopped
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		report.Cases = append(report.Cases, results{Name: c.name, About: c.about, Figures: figures})
	}
	if err := report.write(os.Stdout, opt); err != nil {
		return err
	}
	if missed := report.missed(); opt.strict && missed > 0 {
		failed = append(failed, fmt.Errorf("%d of the bars are missed", missed))
	}
	return errors.Join(failed...)
}
