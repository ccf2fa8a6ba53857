package bundle

import (
	"errors"
	"io"
	"time"
)

// What can be wrong where bundles are stored.
var (
	ErrNotStored = errors.New("the bundle does not exist")
	ErrNoRoom    = errors.New("there is no space for the bundle")
)

// Stored is a bundle where bundles are stored.
type Stored struct {
	Digest  string
	Size    int64 // bytes of the archive
	Created time.Time
}

// Content is the archive of a stored bundle.
type Content interface {
	io.ReadSeekCloser
	io.ReaderAt
}
