package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
)

// Unpack makes the folder dir, which must not exist yet, and writes all files and the
// head into it, verifying them. Files that the archive has as programs, and those of
// programs, may be executed. After an error the folder is gone again.
func (a *Archive) Unpack(ctx context.Context, dir string, programs ...string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("cannot unpack: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		err = errors.Join(a.unpackInto(ctx, root, programs), root.Close())
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

func (a *Archive) unpackInto(ctx context.Context, root *os.Root, programs []string) error {
	for _, name := range a.names() {
		mode := os.FileMode(0o644)
		if executable(a.entries[name]) || slices.Contains(programs, name) {
			mode = 0o755
		}
		if err := writeFile(root, name, mode, func(w io.Writer) error { return a.copy(ctx, w, name) }); err != nil {
			return err
		}
	}
	return writeFile(root, a.head, 0o644, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(a.text))
		return err
	})
}

func writeFile(root *os.Root, name string, mode os.FileMode, write func(io.Writer) error) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("cannot unpack %q: %w", name, err)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("cannot unpack %q: %w", name, err)
	}
	return errors.Join(write(f), f.Close())
}
