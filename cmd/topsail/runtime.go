package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topsail/containers/launch"
	"topsail/containers/python"
	"topsail/serving/bundle"
	"topsail/serving/catalog"
)

// runtimeCommand becomes the model of a bundle. Jobs and local mode run it.
func runtimeCommand() *cobra.Command {
	var at, digest, work string
	c := &cobra.Command{
		Use:     "runtime",
		Short:   "Become the model of a bundle: unpack it, see to its environment, and start it",
		GroupID: "bundles",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVar(&at, "bundle", "", "path or URL of the bundle")
	c.Flags().StringVar(&digest, "digest", "", "what it must be: sha256:…")
	c.Flags().StringVar(&work, "work", "", "folder for what is kept from start to start (default the user's cache folder)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if at == "" {
			return errors.New("name the bundle with --bundle")
		}
		o, err := launchOptions(at, digest, work)
		if err != nil {
			return err
		}
		if strings.Contains(at, "://") {
			if o.Bundle, err = download(c.Context(), at, digest, o.Work); err != nil {
				return err
			}
		}
		if _, err := launch.Sweep(o.Work, launch.DefaultKeep); err != nil {
			fmt.Fprintln(o.Log, "cannot sweep what is no longer used:", err) // that keeps no model from starting
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
		Short: "Write an archive with all packages that the bundle requires; on a machine such as the nodes are",
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
		Short: "Take such an archive in, on a node",
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
		one.Flags().StringVar(&work, "work", "", "folder that `topsail runtime` keeps things in (default the user's cache folder)")
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
		return "", fmt.Errorf("there is no cache folder: %w; name a folder with --work", err)
	}
	return filepath.Join(cache, "topsail"), nil
}

const (
	downloadWithin = 15 * time.Minute
	maxDownload    = 4 << 30 // bytes, what a bundle may have
)

// download fetches a bundle by its URL, once.
func download(ctx context.Context, from, digest, work string) (path string, err error) {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return "", fmt.Errorf("a bundle from a URL needs --digest: %w", err)
	}
	path = filepath.Join(work, "downloads", hex+".zip")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", fmt.Errorf("the URL of the bundle: %w", err)
	}
	shown := catalog.RedactURL(from) // it may be signed
	fmt.Printf("fetching the bundle from %s\n", shown)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("cannot fetch the bundle from %s: %w", shown, reason(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("cannot fetch the bundle from %s: %s", shown, resp.Status)
	}
	return path, keep(io.LimitReader(resp.Body, maxDownload), path, digest)
}

// reason is why a request failed, without its URL.
func reason(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// keep writes what has the digest to a file, whole or not at all.
func keep(r io.Reader, path, digest string) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "download-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close(), removed(temp.Name())) }()
	got, err := bundle.Digest(io.TeeReader(r, temp))
	if err != nil {
		return fmt.Errorf("the bundle came only in part: %w", err)
	}
	if got != digest {
		return fmt.Errorf("what is at that URL is %s, and not %s: put the right bundle there, or correct the version", got, digest)
	}
	return os.Rename(temp.Name(), path)
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
