//go:build !linux

package netio

import "net"

// AwaitClose notices nothing here.
func AwaitClose(net.Conn) (closed bool) { return false }
