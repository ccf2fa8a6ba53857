//go:build unix

package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/topsail-serving/topsail/containers/intact"
)

// sdk is the folder to import the SDK from, one for each content of it.
func (o *Options) sdk(ctx context.Context, held *locks) (string, error) {
	if o.SDK == nil {
		return "", errors.New("the Python SDK to run the bundle with is missing")
	}
	hash := sha256.New()
	err := walkSources(o.SDK, func(name string, text []byte) error {
		fmt.Fprintf(hash, "%q %d\n", name, len(text))
		hash.Write(text)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cannot read the Python SDK: %w", err)
	}
	id := hex.EncodeToString(hash.Sum(nil)[:8])
	dir := filepath.Join(o.Work, "sdk", id)
	s := slot{
		what:  "SDK " + id,
		dir:   dir,
		ready: func() bool { return isFolder(dir) },
		make:  func(ctx context.Context, _ *lock) error { return intact.Make(ctx, dir, o.extract) },
	}
	failed, err := s.hold(ctx, held, o)
	if err != nil {
		return "", err
	}
	return dir, s.repair(ctx, o, failed, o.extract)
}

func (o *Options) extract(dir string) error {
	return walkSources(o.SDK, func(name string, text []byte) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o644)
	})
}

// walkSources visits the files in order, without the files that Python compiled.
func walkSources(sources fs.FS, visit func(name string, text []byte) error) error {
	return fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "__pycache__":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		return visit(name, text)
	})
}
