// Package sharedmem is memory that processes of one user share on one machine. It belongs to no file system, so nothing
// of it is left behind when they end.
package sharedmem
