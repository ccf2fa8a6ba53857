//go:build !race

package netio

import (
	"syscall"
	"unsafe"
)

func read(fd uintptr, b []byte) (int, syscall.Errno)  { return call(syscall.SYS_READ, fd, b) }
func write(fd uintptr, b []byte) (int, syscall.Errno) { return call(syscall.SYS_WRITE, fd, b) }

// call is a system call that cannot block, since all sockets of Go are such. b is not
// empty.
func call(number, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
