package traffic

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/topsail-serving/topsail/internal/durable"
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
	return durable.WriteFile(string(f), past, 0o600)
}
