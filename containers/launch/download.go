//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
)

const (
	downloadWithin = 15 * time.Minute
	maxDownload    = 4 << 30 // bytes, what a bundle may have
)

// Download fetches a bundle into a work folder from the first of some URLs that has it.
// The caller removes the file. log gets lines for people.
func Download(ctx context.Context, client *http.Client, from []string, digest, work string, log io.Writer) (path string, err error) {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return "", fmt.Errorf("a bundle from a URL needs --digest: %w", err)
	}
	path = filepath.Join(work, "downloads", hex+".zip")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadWithin)
	defer cancel()
	var errs []error
	for _, one := range from {
		if err := download(ctx, client, one, digest, path, log); err != nil {
			errs = append(errs, err)
			continue
		}
		return path, nil
	}
	return "", errors.Join(errs...)
}

func download(ctx context.Context, client *http.Client, from, digest, path string, log io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return fmt.Errorf("the URL of the bundle: %w", err)
	}
	shown := catalog.RedactURL(from) // it may be signed
	fmt.Fprintf(log, "fetching the bundle from %s\n", shown)
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot fetch the bundle from %s: %w", shown, reason(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot fetch the bundle from %s: %s", shown, resp.Status)
	}
	return keep(io.LimitReader(resp.Body, maxDownload), path, digest)
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
		return fmt.Errorf("the bundle was received only in part: %w", err)
	}
	if got != digest {
		return fmt.Errorf("the bundle at that URL has the digest %s instead of %s: put the right bundle there, or correct the version", got, digest)
	}
	return os.Rename(temp.Name(), path)
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
