//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitStatus begins how a process ended that was not killed.
const exitStatus = "exit status "

// ending says in words how a process ended.
func ending(s syscall.WaitStatus) string {
	if s.Signaled() {
		return "killed by signal " + unix.SignalName(s.Signal())
	}
	return fmt.Sprint(exitStatus, s.ExitStatus())
}

// exitCode is what a shell would return for a process that ended so.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// explainStart adds the next step to an error of starting a command.
func explainStart(err error) error {
	hint := ""
	switch {
	case errors.Is(err, exec.ErrNotFound):
		hint = "install it or give its full path"
	case errors.Is(err, fs.ErrNotExist):
		hint = "check the path and, for a script, the interpreter in its first line"
	case errors.Is(err, fs.ErrPermission):
		hint = "make it executable with chmod +x"
	case errors.Is(err, unix.ENOEXEC):
		hint = "begin the script with a line such as #!/bin/sh"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
