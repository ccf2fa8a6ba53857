package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topsail-serving/topsail/cmd/topsail/admin"
	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/cmd/topsail/cluster"
	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/local"
	"github.com/topsail-serving/topsail/internal/obs"
)

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "topsail",
		Short:         "Serve machine-learning models within a latency objective",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(&cobra.Group{ID: "roles", Title: "Roles:"}, &cobra.Group{ID: "cluster", Title: "Cluster servers, without the management API:"}, &cobra.Group{ID: "bundles", Title: "Bundles, on nodes:"})
	root.AddCommand(
		localCommand(),
		roleCommand("gateway", "Answer queries", cluster.Gateway),
		roleCommand("sidecar", "Serve one replica, next to its container", cluster.Sidecar),
		roleCommand("scheduler", "Decide the numbers of replicas, while leading", cluster.Scheduler),
		roleCommand("web", "Serve management", cluster.Web),
		streamCommand(),
		seedCommand(), restoreCommand(),
		configCommand(), doctorCommand(), runtimeCommand(), environmentCommand(), engineCommand(),
	)
	root.AddCommand(admin.ApplyCommand())
	admin.AddTo(root)
	return root
}

// run is what a command does with its configuration.
type run func(ctx context.Context, cfg *config.Config, log *slog.Logger) error

// roleCommand is a role of a cluster, one to a process.
func roleCommand(name, short string, role run) *cobra.Command {
	return configured(&cobra.Command{Use: name, Short: short, GroupID: "roles", Args: cobra.NoArgs},
		func(c *cobra.Command, _ []string, cfg *config.Config, log *slog.Logger) error {
			return role(c.Context(), cfg, log)
		})
}

// streamCommand is a role, and what is done with streams.
func streamCommand() *cobra.Command {
	c := roleCommand("stream", "Predict records of Kafka and Redis streams, and take models from them", cluster.Stream)
	c.AddCommand(admin.StreamCommands()...)
	return c
}

func localCommand() *cobra.Command {
	var watch, recovering bool
	c := &cobra.Command{
		Use:     "local",
		Short:   "Run everything in this process, with models as child processes",
		GroupID: "roles",
		Args:    cobra.NoArgs,
	}
	c.Flags().BoolVar(&watch, "watch", false, "restart a model when its source changes")
	c.Flags().BoolVar(&recovering, "recover", false, "if the state is damaged or missing, continue from its last good copy; later changes are lost")
	return configured(c, func(c *cobra.Command, _ []string, cfg *config.Config, log *slog.Logger) error {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("cannot find the path of this program: %w", err)
		}
		return local.Run(c.Context(), cfg, local.Options{Guard: []string{self, "guard", "--"}, Runtime: []string{self, "runtime"}, Watch: watch, Recover: recovering, Out: os.Stdout, Log: log})
	})
}

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its value and source",
		Args:  cobra.NoArgs,
	}
	return configured(c, func(c *cobra.Command, _ []string, cfg *config.Config, _ *slog.Logger) error {
		t := screen.NewTable("SETTING", "VALUE", "SOURCE")
		for _, s := range cfg.Settings() {
			t.Row(s.Name, s.Value, s.Source)
		}
		return t.Print(c.OutOrStdout())
	})
}

// configured makes a command load its configuration and its log first.
func configured(c *cobra.Command, do func(c *cobra.Command, args []string, cfg *config.Config, log *slog.Logger) error) *cobra.Command {
	load := configFlags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		log, err := obs.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
		if err != nil {
			return err
		}
		for _, w := range cfg.Warnings {
			log.Warn(w)
		}
		return do(c, args, cfg, log)
	}
	return c
}

// configFlags adds a flag for every setting, and returns a function that loads
// the configuration once the flags are parsed.
func configFlags(flags *pflag.FlagSet) (load func() (*config.Config, error)) {
	path := flags.StringP("config", "c", "", "configuration file (default topsail.toml, if it exists)")
	keys := map[string]bool{}
	for _, k := range config.Keys() {
		if k.Flag != "" {
			flags.String(k.Flag, "", k.Help)
			if k.Type == "boolean" {
				flags.Lookup(k.Flag).NoOptDefVal = "true"
			}
			keys[k.Flag] = true
		}
	}
	return func() (*config.Config, error) {
		set := map[string]string{}
		flags.Visit(func(f *pflag.Flag) {
			if keys[f.Name] {
				set[f.Name] = f.Value.String()
			}
		})
		return config.Load(*path, os.Environ(), set)
	}
}
