package catalog

import (
	"errors"
	"fmt"
)

// What can be wrong with a change. The errors returned wrap one of these and
// name the object, in words that may be shown to a client.
var (
	ErrNotFound = errors.New("does not exist")
	ErrExists   = errors.New("already exists")
	ErrConflict = errors.New("the catalog has changed")
	ErrInvalid  = errors.New("invalid")
)

func invalid(err error) error { return fmt.Errorf("%w: %w", ErrInvalid, err) }

func appNotFound(name string) error { return fmt.Errorf("app %q %w", name, ErrNotFound) }

func modelNotFound(name string) error { return fmt.Errorf("model %q %w", name, ErrNotFound) }

func versionNotFound(model, version string) error {
	return fmt.Errorf("version %q of model %q %w", version, model, ErrNotFound)
}
