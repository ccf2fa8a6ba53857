//go:build unix && !linux

package process

// Usages knows nothing where there is no /proc.
func Usages([]int) map[int]Usage { return nil }
