//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package screen

import "golang.org/x/sys/unix"

// The requests that read and write the settings of a terminal.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
