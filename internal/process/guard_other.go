//go:build unix && !linux

package process

import "syscall"

func adoptOrphans() error { return nil }

func groupLeader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killOrphans finds none: without a subreaper, orphans are init's children.
func killOrphans() {}
