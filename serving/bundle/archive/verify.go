package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Verify reads every file and compares it with its checksum.
func (a *Archive) Verify(ctx context.Context) error {
	for _, name := range a.names() {
		if err := a.copy(ctx, io.Discard, name); err != nil {
			return err
		}
	}
	return nil
}

// copy unpacks one file. It writes at most a byte more than the file says that it has.
func (a *Archive) copy(ctx context.Context, w io.Writer, name string) error {
	file := a.files[name]
	r, err := a.entries[name].Open()
	if err != nil {
		return damaged(name, err)
	}
	defer r.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, hash), io.LimitReader(patient{ctx, r}, file.Size+1))
	switch got := hex.EncodeToString(hash.Sum(nil)); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return damaged(name, err)
	case n != file.Size:
		return fmt.Errorf("file %q is longer than declared, %d bytes", name, file.Size)
	case got != file.SHA256:
		return fmt.Errorf("file %q has the sha256 %s, and %s says %s", name, got, a.head, file.SHA256)
	}
	return nil
}

// patient reads until ctx ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}
