package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"topsail/cmd/topsail/admin"
	"topsail/cmd/topsail/cluster"
	"topsail/cmd/topsail/config"
	"topsail/serving"
)

func seedCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "seed",
		Short:   "Write the apps and models of the configuration file directly to Redis, where no management service runs; otherwise use apply",
		GroupID: "cluster",
		Args:    cobra.NoArgs,
	}
	replace := c.Flags().Bool("replace", false, "allow redefining a version under its name")
	return configured(c, func(c *cobra.Command, _ []string, cfg *config.Config, log *slog.Logger) error {
		if cfg.File == "" {
			return errors.New("there is no configuration file: name one with --config")
		}
		report, err := cluster.Apply(c.Context(), cfg, *replace, log)
		if err != nil {
			return err
		}
		for _, note := range report {
			fmt.Fprintln(c.OutOrStdout(), note.Text)
		}
		if len(report) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "nothing to change")
		}
		return nil
	})
}

func restoreCommand() *cobra.Command {
	var accept bool
	var snapshot string
	c := &cobra.Command{
		Use:   "restore [BACKUP]",
		Short: "Restore a backup; without one, write the last good state back into a Redis that was flushed or rewound",
		Long: "With the file or s3:// address of a backup, makes the state what it was then, through the API: it checks the backup, says what\n" +
			"would change, and asks.\n\n" +
			"Without one, has a process of a cluster write the last good catalog back into a Redis that was flushed or rewound, or accepts\n" +
			"what Redis holds. That needs no management side, but the settings of one.",
		Example: "  topsail restore before-upgrade.tar --dry-run\n  topsail restore\n  topsail restore --accept",
		GroupID: "cluster",
		Args:    cobra.MaximumNArgs(1),
	}
	admin.RestoreFlags(c)
	c.Flags().BoolVar(&accept, "accept", false, "accept what is in Redis, and forget the previous state")
	c.Flags().StringVar(&snapshot, "snapshot", "", "restore this snapshot file, where no process that knew the state is running")
	configured(c, func(c *cobra.Command, _ []string, cfg *config.Config, log *slog.Logger) error {
		said, err := cluster.Restore(c.Context(), cfg, snapshot, accept, log)
		if err == nil {
			fmt.Fprintln(c.OutOrStdout(), said)
		}
		return err
	})
	ofRedis := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return admin.RestoreBackup(c, args)
		}
		return ofRedis(c, args)
	}
	return c
}

func scaleCommand() *cobra.Command {
	var pause, release bool
	var until time.Duration
	var reason string
	c := &cobra.Command{
		Use:     "scale MODEL VERSION [COUNT]",
		Short:   "Set the number of a version's replicas manually, or pause its scaling",
		GroupID: "cluster",
		Args:    cobra.RangeArgs(2, 3),
		Example: "  topsail scale wine-forest 1 4 --for 1h --reason 'load test'\n  topsail scale wine-forest 1 --pause\n  topsail scale wine-forest 1 --release",
	}
	c.Flags().BoolVar(&pause, "pause", false, "keep the current number")
	c.Flags().BoolVar(&release, "release", false, "let the scheduler decide again")
	c.Flags().DurationVar(&until, "for", 0, "how long the pin lasts (default: until it is released)")
	c.Flags().StringVar(&reason, "reason", "", "reason, shown to others")
	return configured(c, func(c *cobra.Command, args []string, cfg *config.Config, log *slog.Logger) error {
		pin, err := pinOf(args, pause, release, until, reason)
		if err != nil {
			return err
		}
		id := serving.ModelID{Model: args[0], Version: args[1]}
		if err := cluster.Pin(c.Context(), cfg, id, pin, log); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), saidOf(id, pin))
		return nil
	})
}

// pinOf is what the operator says, nil to release.
func pinOf(args []string, pause, release bool, hold time.Duration, reason string) (*serving.Pin, error) {
	said := 0
	for _, one := range []bool{len(args) == 3, pause, release} {
		if one {
			said++
		}
	}
	if said != 1 {
		return nil, errors.New("say one of a COUNT, --pause and --release")
	}
	if release {
		return nil, nil
	}
	pin := &serving.Pin{Count: serving.Paused, Reason: reason}
	if hold > 0 {
		pin.Until = time.Now().Add(hold).UTC()
	}
	if len(args) == 3 {
		count, err := strconv.Atoi(args[2])
		if err != nil || count < 0 || count > serving.MaxReplicas {
			return nil, fmt.Errorf("%q is not a number of replicas: use 0 to %d", args[2], serving.MaxReplicas)
		}
		pin.Count = count
	}
	return pin, nil
}

// saidOf confirms what was asked for.
func saidOf(id serving.ModelID, pin *serving.Pin) string {
	if pin == nil {
		return fmt.Sprintf("the scheduler decides about %v again", id)
	}
	until := "until it is released"
	if !pin.Until.IsZero() {
		until = "until " + pin.Until.Local().Format(time.DateTime)
	}
	if pin.Count == serving.Paused {
		return fmt.Sprintf("%v keeps the replicas it has, %s", id, until)
	}
	return fmt.Sprintf("%v is to have %d replicas, %s; `topsail decisions` says when that is done", id, pin.Count, until)
}

func gatewaysCommand() *cobra.Command {
	var job, reason string
	c := &cobra.Command{
		Use:     "gateways COUNT",
		Short:   "Set the number of gateways",
		GroupID: "cluster",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&job, "job", "topsail-gateway", "the Nomad job of the gateways")
	c.Flags().StringVar(&reason, "reason", "set by hand", "reason, for the job's history")
	return configured(c, func(c *cobra.Command, args []string, cfg *config.Config, log *slog.Logger) error {
		count, err := strconv.Atoi(args[0])
		if err != nil || count < 1 {
			return fmt.Errorf("%q is not a number of gateways: use 1 or more", args[0])
		}
		if err := cluster.ScaleGateways(c.Context(), cfg, job, count, reason, log); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s is to have %d gateways\n", job, count)
		return nil
	})
}

func decisionsCommand() *cobra.Command {
	var model string
	var most int
	c := &cobra.Command{
		Use:     "decisions",
		Short:   "Print the latest decisions of the scheduler and their reasons",
		GroupID: "cluster",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&model, "model", "", "of this model only")
	c.Flags().IntVarP(&most, "lines", "n", 20, "how many")
	return configured(c, func(c *cobra.Command, _ []string, cfg *config.Config, log *slog.Logger) error {
		list, err := cluster.Decisions(c.Context(), cfg, model, most, log)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "TIME\tVERSION\tFROM\tTO\tOUTCOME\tRULE\tREASON")
		for _, d := range list {
			fmt.Fprintf(w, "%s\t%v\t%d\t%d\t%s\t%s\t%s\n", d.At.Local().Format(time.DateTime), d.ModelID, d.From, d.To, d.Outcome, d.Rule, d.Reason)
		}
		return w.Flush()
	})
}

func jobCommand() *cobra.Command {
	c := &cobra.Command{Use: "job", Short: "Look at the Nomad jobs of model versions", GroupID: "cluster"}
	c.AddCommand(
		configured(&cobra.Command{Use: "render MODEL VERSION", Short: "Print the job of a version as HCL", Args: cobra.ExactArgs(2)},
			func(c *cobra.Command, args []string, cfg *config.Config, log *slog.Logger) error {
				hcl, err := cluster.RenderJob(c.Context(), cfg, serving.ModelID{Model: args[0], Version: args[1]}, log)
				if err == nil {
					fmt.Fprint(c.OutOrStdout(), hcl)
				}
				return err
			}),
		configured(&cobra.Command{Use: "plan MODEL VERSION", Short: "Show what Nomad would do with the job of a version", Args: cobra.ExactArgs(2)},
			func(c *cobra.Command, args []string, cfg *config.Config, log *slog.Logger) error {
				said, err := cluster.PlanJob(c.Context(), cfg, serving.ModelID{Model: args[0], Version: args[1]}, log)
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), said)
				}
				return err
			}),
	)
	return c
}
