package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"topsail/cmd/topsail/config"
	"topsail/cmd/topsail/local"
	"topsail/internal/obs"
)

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "topsail",
		Short:         "Serve machine-learning models under a latency promise",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(localCommand(), configCommand())
	return root
}

func localCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "local",
		Short: "Run everything in this process, with models as child processes",
		Args:  cobra.NoArgs,
	}
	load := configFlags(c.Flags())
	c.Flags().BoolVar(&watch, "watch", false, "restart a model when its source changes")
	c.RunE = func(c *cobra.Command, _ []string) error {
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
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("cannot find the path of this program: %w", err)
		}
		return local.Run(c.Context(), cfg, local.Options{Guard: []string{self, "guard", "--"}, Watch: watch, Out: os.Stdout, Log: log})
	}
	return c
}

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its value and where that came from",
		Args:  cobra.NoArgs,
	}
	load := configFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SETTING\tVALUE\tSOURCE")
		for _, s := range cfg.Settings() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Value, s.Source)
		}
		return w.Flush()
	}
	return c
}

// configFlags adds a flag for every setting, and returns a function that loads
// the configuration once the flags are parsed.
func configFlags(flags *pflag.FlagSet) (load func() (*config.Config, error)) {
	path := flags.StringP("config", "c", "", "configuration file (default topsail.toml, if there is one)")
	keys := map[string]bool{}
	for _, k := range config.Keys() {
		if k.Flag != "" {
			flags.String(k.Flag, "", k.Help)
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
