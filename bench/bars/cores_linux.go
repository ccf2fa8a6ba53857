package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// pinToCores makes this process and all that it will start use n cores at most.
// Threads that exist keep the cores they have, so the program starts anew.
func pinToCores(n int) error {
	runtime.LockOSThread() // the mask is the thread's, and Exec keeps that of its caller
	defer runtime.UnlockOSThread()
	var usable, kept unix.CPUSet
	if err := unix.SchedGetaffinity(0, &usable); err != nil {
		return fmt.Errorf("cannot see which cores there are: %w", err)
	}
	if usable.Count() <= n {
		return nil
	}
	for core := 0; kept.Count() < n; core++ {
		if usable.IsSet(core) {
			kept.Set(core)
		}
	}
	if err := unix.SchedSetaffinity(0, &kept); err != nil {
		return fmt.Errorf("cannot keep to %d cores: %w", n, err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the path of this program: %w", err)
	}
	return fmt.Errorf("cannot start anew on %d cores: %w", n, syscall.Exec(self, os.Args, os.Environ()))
}

// dependent makes a process lead a group, so that Ctrl-C reaches only us, and die
// when we do.
func dependent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
