package redisstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/topsail-serving/topsail/internal/durable"
)

// fileLimit bounds what is read as a snapshot, in bytes.
const fileLimit = 256 << 20

// loadFile returns the snapshot of a file, or nil where there is none. A file that
// cannot be read is set aside, for an operator to look at.
func loadFile(path string, log *slog.Logger) (*snapshot, error) {
	if path == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the snapshot: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("open the snapshot: %w", err)
	case info.Size() > fileLimit:
		return nil, fmt.Errorf("the snapshot %s is larger than %d bytes; is it the right file?", path, fileLimit)
	}
	data, damage := os.ReadFile(path)
	if damage == nil {
		var snap *snapshot
		if snap, damage = decodeFile(data); damage == nil {
			return snap, nil
		}
	}
	aside := path + ".damaged"
	if err := errors.Join(os.RemoveAll(aside), os.Rename(path, aside)); err != nil {
		return nil, fmt.Errorf("the snapshot %s is damaged (%w) and cannot be set aside, remove it: %w", path, damage, err)
	}
	log.Error("the snapshot is damaged and set aside; without it, the catalog comes from Redis alone", "file", path, "aside", aside, "err", damage)
	return nil, nil
}

// saveFile replaces the file, so that a power failure leaves the old or the new one.
func saveFile(path string, snap *snapshot) error {
	data, err := encodeFile(snap)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
}
