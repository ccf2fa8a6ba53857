package sharedmem

import (
	"crypto/rand"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Memory is memory that this process writes, and others may read.
type Memory struct {
	bytes []byte
	fd    int
	name  string
}

// New makes memory of some bytes, a multiple of the size of pages, which take memory once they are written. The
// caller closes it.
func New(size int) (*Memory, error) {
	name := "topsail-" + rand.Text()
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("sharedmem: make memory: %w", err)
	}
	m := &Memory{fd: fd, name: name}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		// Who makes it smaller would end the processes that use it.
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		m.bytes, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("sharedmem: map %d bytes: %w", size, err)
	}
	return m, nil
}

// Bytes is the memory. It must not be used after Close.
func (m *Memory) Bytes() []byte { return m.bytes }

// Path is where another process of the same user opens it as a file, while this one has not closed it.
func (m *Memory) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.fd) }

// Link is where the path leads, by which another process knows that it is this memory: its processes may have other
// numbers.
func (m *Memory) Link() string { return "/memfd:" + m.name + " (deleted)" }

// Forget gives the memory of all pages back. They are zero from then on.
func (m *Memory) Forget() {
	// Where it fails, the memory stays in use until Close.
	_ = unix.Fallocate(m.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(m.bytes)))
}

// Close ends it for this process.
func (m *Memory) Close() error {
	err := unix.Munmap(m.bytes)
	m.bytes = nil
	if failed := unix.Close(m.fd); err == nil {
		err = failed
	}
	return err
}
