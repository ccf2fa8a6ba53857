package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/containers/launch"
	"github.com/topsail-serving/topsail/containers/python"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// runtimeCommand becomes the model of a bundle. Jobs and local mode run it.
func runtimeCommand() *cobra.Command {
	var at, digest, work, management, caFile, serverName string
	c := &cobra.Command{
		Use:     "runtime",
		Short:   "Run a bundle: unpack it, prepare its environment, and start it",
		GroupID: "bundles",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&at, "bundle", "", "path or URL of the bundle")
	c.Flags().StringVar(&digest, "digest", "", "expected digest: sha256:…")
	c.Flags().StringVar(&work, "work", "", "folder for data kept between starts (default the user's cache folder)")
	c.Flags().StringVar(&management, "management", "", "file with the address of the management service, to fetch the bundle of --digest from")
	c.Flags().StringVar(&caFile, "ca-file", "", "additional certificate authorities to trust when fetching the bundle")
	c.Flags().StringVar(&serverName, "server-name", "", "the name that the certificate of an IP address must have (default the address)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if (at == "") == (management == "") {
			return errors.New("name the bundle with --bundle, or with --management and --digest")
		}
		o, err := launchOptions(at, digest, work)
		if err != nil {
			return err
		}
		if management != "" || strings.Contains(at, "://") {
			client, err := launch.Client(caFile, serverName)
			if err != nil {
				return err
			}
			if _, err := bundle.ParseDigest(digest); err != nil {
				return fmt.Errorf("a bundle from elsewhere needs --digest: %w", err)
			}
			o.Fetch = func(ctx context.Context) (_ string, err error) {
				from := []string{at}
				if management != "" {
					if from, err = launch.Sources(ctx, management, digest, o.Log); err != nil {
						return "", err
					}
				}
				return launch.Download(ctx, client, from, digest, o.Work, o.Log)
			}
		}
		if _, err := launch.Sweep(o.Work, launch.DefaultKeep); err != nil {
			fmt.Fprintln(o.Log, "cannot remove unused files:", err) // that keeps no model from starting
		}
		return launch.Run(c.Context(), o)
	}
	return c
}

// environmentCommand carries environments to nodes without a network.
func environmentCommand() *cobra.Command {
	var work, out string
	c := &cobra.Command{Use: "environment", Short: "Carry the packages of a bundle to nodes without a network", GroupID: "bundles"}
	pack := &cobra.Command{
		Use:   "pack BUNDLE",
		Short: "Write an archive of all packages that the bundle requires; run it on a machine like the nodes",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := launchOptions(args[0], "", work)
			if err != nil {
				return err
			}
			to := cmp.Or(out, strings.TrimSuffix(filepath.Base(args[0]), ".zip")+".wheels.zip")
			if err := launch.PackEnvironment(c.Context(), o, to); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "wrote %s; on each node: topsail environment load %s\n", to, filepath.Base(to))
			return nil
		},
	}
	pack.Flags().StringVar(&out, "out", "", "the archive to write (default BUNDLE.wheels.zip)")
	load := &cobra.Command{
		Use:   "load ARCHIVE",
		Short: "Install such an archive on a node",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			folder, err := workFolder(work)
			if err != nil {
				return err
			}
			id, err := launch.LoadEnvironment(c.Context(), args[0], folder)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "environment %s is built from this archive from now on\n", id)
			return nil
		},
	}
	for _, one := range []*cobra.Command{pack, load} {
		one.Flags().StringVar(&work, "work", "", "data folder of `topsail runtime` (default the user's cache folder)")
	}
	c.AddCommand(pack, load)
	return c
}

func launchOptions(at, digest, work string) (launch.Options, error) {
	folder, err := workFolder(work)
	if err != nil {
		return launch.Options{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return launch.Options{}, fmt.Errorf("cannot find this program: %w", err)
	}
	return launch.Options{
		Bundle: at, Digest: digest, Work: folder, SDK: python.SDK(), Beside: filepath.Dir(program), Log: os.Stdout, Environ: os.Environ(),
	}, nil
}

func workFolder(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder is set: %w; name a folder with --work", err)
	}
	return filepath.Join(cache, "topsail"), nil
}
