//go:build !linux

package gocontainer

// pin does nothing: this system does not let a thread choose its CPUs.
func pin([]int) error { return nil }
