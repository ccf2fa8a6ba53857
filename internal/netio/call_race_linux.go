//go:build race

package netio

import (
	"errors"
	"syscall"
)

// Under the race detector the system calls are those of Go, which tell it that what
// came before a write has happened before its bytes are read.

func read(fd uintptr, b []byte) (int, syscall.Errno)  { return call(syscall.Read, fd, b) }
func write(fd uintptr, b []byte) (int, syscall.Errno) { return call(syscall.Write, fd, b) }

func call(system func(int, []byte) (int, error), fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, err := system(int(fd), b)
		errno, _ := errors.AsType[syscall.Errno](err)
		switch errno {
		case 0:
			return n, 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
