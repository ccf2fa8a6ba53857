package traffic

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a Keeper of one process: the path of a file.
type File string

// LoadTraffic implements Keeper.
func (f File) LoadTraffic(context.Context) ([]byte, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// SaveTraffic implements Keeper. A power failure leaves the old file or the new one.
func (f File) SaveTraffic(_ context.Context, past []byte) error {
	temp := string(f) + ".new"
	if err := writeSynced(temp, past); err != nil {
		return err
	}
	if err := os.Rename(temp, string(f)); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(string(f)))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
