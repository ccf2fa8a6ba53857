package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin"
	"github.com/topsail-serving/topsail/cmd/topsail/cluster"
	"github.com/topsail-serving/topsail/cmd/topsail/config"
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
			return errors.New("no configuration file was found: name one with --config")
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
		Long: "With the file or s3:// address of a backup, returns the state to that of the backup, through the API: it checks the backup, shows what\n" +
			"would change, and asks for confirmation.\n\n" +
			"Without one, has a process of a cluster write the last good catalog back into a Redis that was flushed or rewound, or accepts\n" +
			"the contents of Redis. This needs the settings of a management service, but none that runs.",
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
