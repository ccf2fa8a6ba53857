//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"topsail/serving/bundle"
)

// unpacked is the folder of the bundle.
func (o *Options) unpacked(ctx context.Context, held *locks) (*bundle.Manifest, string, error) {
	digest, err := o.digest()
	if err != nil {
		return nil, "", err
	}
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(o.Work, "bundles", hex)
	s := slot{
		what:  "bundle " + hex[:12],
		dir:   dir,
		ready: func() bool { return isFolder(dir) },
		make: func(ctx context.Context, _ *lock) error {
			return throughTemp(dir, func(temp string) error { return o.unpack(ctx, digest, temp) })
		},
	}
	if err := s.hold(ctx, held, o); err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, bundle.ManifestName))
	if err != nil {
		return nil, "", fmt.Errorf("the unpacked bundle is damaged; remove %s and start again: %w", dir, err)
	}
	manifest, err := bundle.ParseManifest(text)
	if err != nil {
		return nil, "", fmt.Errorf("the unpacked bundle is damaged; remove %s and start again: %w", dir, err)
	}
	return manifest, dir, nil
}

// digest is the one that was given, or the archive's own.
func (o *Options) digest() (string, error) {
	if o.Digest != "" {
		return o.Digest, nil
	}
	f, err := os.Open(o.Bundle)
	if err != nil {
		return "", fmt.Errorf("cannot read the bundle: %w", err)
	}
	defer f.Close()
	digest, err := bundle.Digest(f)
	if err != nil {
		return "", fmt.Errorf("cannot read the bundle: %w", err)
	}
	return digest, nil
}

func (o *Options) unpack(ctx context.Context, digest, dir string) (err error) {
	at := o.Bundle
	if o.Fetch != nil {
		if at, err = o.Fetch(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(at)) }()
	}
	f, err := os.Open(at)
	if err != nil {
		return fmt.Errorf("cannot read the archive: %w", err)
	}
	defer f.Close()
	got, err := bundle.Digest(f)
	if err != nil {
		return fmt.Errorf("cannot read the archive: %w", err)
	}
	if got != digest {
		return fmt.Errorf("%s has the digest %s and not %s: it was damaged on its way here, or is another bundle; fetch it again",
			at, got, digest)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("cannot read the archive: %w", err)
	}
	b, err := bundle.Open(f, size)
	if err != nil {
		return err
	}
	o.say("bundle %s: unpacking %d files", got[len("sha256:"):][:12], len(b.Manifest.Files))
	return b.Unpack(ctx, dir)
}
