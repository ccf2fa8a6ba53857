//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/topsail-serving/topsail/containers/intact"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// unpacked is the folder of the bundle, which has the files that the archive has. failed says
// that the last start of the bundle has just failed, as far as can be seen.
func (o *Options) unpacked(ctx context.Context, held *locks) (m *bundle.Manifest, dir string, failed bool, err error) {
	digest, err := o.digest()
	if err != nil {
		return nil, "", false, err
	}
	digits, err := bundle.ParseDigest(digest)
	if err != nil {
		return nil, "", false, err
	}
	dir = filepath.Join(o.Work, "bundles", digits)
	fill := func(temp string) error { return o.unpack(ctx, digest, temp) }
	s := slot{
		what:  "bundle " + digits[:12],
		dir:   dir,
		ready: func() bool { return isFolder(dir) },
		make:  func(ctx context.Context, _ *lock) error { return intact.Make(ctx, dir, fill) },
	}
	if failed, err = s.hold(ctx, held, o); err != nil {
		return nil, "", false, err
	}
	if err := s.repair(ctx, o, failed, fill); err != nil {
		return nil, "", false, err
	}
	text, err := os.ReadFile(filepath.Join(dir, bundle.ManifestName))
	if err == nil {
		m, err = bundle.ParseManifest(text)
	}
	if err != nil {
		return nil, "", false, fmt.Errorf("the unpacked bundle is damaged; remove %s and start again: %w", dir, err)
	}
	return m, dir, failed, nil
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
		return fmt.Errorf("cannot read the archive, upload it again where it is stored (topsail artifact push): %w", err)
	}
	defer f.Close()
	got, err := bundle.Digest(f)
	if err != nil {
		return fmt.Errorf("cannot read the archive, upload it again where it is stored (topsail artifact push): %w", err)
	}
	if got != digest {
		return fmt.Errorf("%s has the digest %s instead of %s: it was damaged, or is another bundle; fetch it again, or upload it again where it is stored (topsail artifact push)",
			at, got, digest)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("cannot read the archive, upload it again where it is stored (topsail artifact push): %w", err)
	}
	b, err := bundle.Open(f, size)
	if err != nil {
		return err
	}
	o.say("bundle %s: unpacking %d files", got[len("sha256:"):][:12], len(b.Manifest.Files))
	return b.Unpack(ctx, dir)
}
