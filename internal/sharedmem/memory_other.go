//go:build !linux

package sharedmem

import "errors"

// Memory is memory that this process writes, and others may read. There is none on this system.
type Memory struct{}

// New says that there is none on this system.
func New(int) (*Memory, error) { return nil, errors.ErrUnsupported }

// Bytes is the memory.
func (m *Memory) Bytes() []byte { return nil }

// Path is where another process opens it.
func (m *Memory) Path() string { return "" }

// Link is where the path leads.
func (m *Memory) Link() string { return "" }

// Forget gives the memory of all pages back.
func (m *Memory) Forget() {}

// Close ends it for this process.
func (m *Memory) Close() error { return nil }
