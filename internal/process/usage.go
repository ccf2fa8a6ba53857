//go:build unix

package process

import "time"

// Usage is what a command uses, with all the processes that it has started.
type Usage struct {
	CPU       time.Duration // of all cores; grows, but for what children took that nothing waited for
	Memory    int64         // bytes that are resident; what processes share counts for each
	Processes []int
}
