package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/cluster"
	"github.com/topsail-serving/topsail/cmd/topsail/doctor"
	"github.com/topsail-serving/topsail/internal/check"
)

func doctorCommand() *cobra.Command {
	var local, deploy bool
	var format string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that the configuration depends on, and report what to do",
		Args:  cobra.NoArgs,
	}
	c.Flags().BoolVar(&local, "local", false, "check what local mode needs, or with =false a cluster's servers (default: according to the settings)")
	c.Flags().BoolVar(&deploy, "deploy", false, "on a cluster: also deploy a small bundle, wait for its replica, and delete it; the key is read from TOPSAIL_API_KEY")
	c.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	load := configFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if format != "table" && format != "json" {
			return fmt.Errorf("output %q is unknown: use table or json", format)
		}
		cfg, err := load()
		if err != nil {
			return report(c, check.Run(c.Context(), []check.Check{doctor.Unreadable(err)}), format)
		}
		if !c.Flags().Changed("local") {
			local = doctor.IsLocal(cfg, os.Getenv)
		}
		checks := doctor.Ground(cfg)
		if local {
			checks = append(checks, doctor.Local(cfg)...)
		} else {
			checks = append(checks, cluster.Checks(cfg)...)
		}
		found := check.Run(c.Context(), checks)
		if deploy && local {
			return fmt.Errorf("--deploy is for a cluster")
		}
		if deploy {
			found = append(found, cluster.Deploy(c.Context(), cfg, os.Getenv("TOPSAIL_API_KEY")))
		}
		return report(c, found, format)
	}
	return c
}

// report prints what was found, and fails if something does not work.
func report(c *cobra.Command, found []check.Finding, format string) error {
	if err := doctor.Print(c.OutOrStdout(), found, format); err != nil {
		return err
	}
	if fails := doctor.Fails(found); fails > 0 {
		return fmt.Errorf("%d of %d checks fail", fails, len(found))
	}
	return nil
}
