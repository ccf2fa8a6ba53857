//go:build !linux

package main

import (
	"errors"
	"syscall"
)

// pinToCores: the figures need /proc, so there is nothing to pin elsewhere.
func pinToCores(int) error { return errors.New("the benchmarks run on Linux only") }

func dependent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
