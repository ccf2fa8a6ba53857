package sidecar

import (
	"os"
	"runtime"
)

// LeaveProcessors keeps Go in this process to a quarter of the processors that it
// would take, and to one at least, unless GOMAXPROCS is set. It is for a process that
// is nothing but a sidecar: the processors beside it are its models', and each one
// that Go takes beyond need is woken in the midst of their computing. A query takes a
// busy sidecar some 5 µs.
func LeaveProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/4))
	}
}
