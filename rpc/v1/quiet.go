//go:build unix

package v1

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

var (
	errSurplus = errors.New("the container sent more than one output per input")
	errGone    = errors.New("the container closed the connection")
)

// quiet fails when something waits to be read: between two batches, whatever does
// is a surplus of the reply before, or the container's end. It looks without
// waiting, which a read with a deadline cannot do: one that has passed hides what
// is there.
func quiet(raw syscall.RawConn) error {
	var (
		b   [1]byte
		n   int
		err error
	)
	look := func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), b[:])
		return true
	}
	if failed := raw.Read(look); failed != nil {
		return failed
	}
	switch {
	case n > 0:
		return errSurplus
	case err == nil:
		return fmt.Errorf("%w: %w", errGone, io.EOF)
	case errors.Is(err, syscall.EAGAIN):
		return nil
	}
	return err
}
