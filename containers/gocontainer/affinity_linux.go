package gocontainer

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pin keeps the calling goroutine to a thread on these CPUs for as long as it runs; none are any.
func pin(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	runtime.LockOSThread() // the thread ends with the goroutine
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("run on the CPUs %v: %w: the process may use others", cpus, err)
	}
	return nil
}
