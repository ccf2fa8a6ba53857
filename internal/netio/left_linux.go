package netio

import (
	"crypto/tls"
	"net"
	"syscall"
)

// AwaitClose waits until the other side closes a connection of Wrap, under TLS or not, and says so. It
// takes nothing from the connection, which nothing else may read meanwhile, and gives up when something
// else arrives or the read deadline passes.
func AwaitClose(nc net.Conn) (closed bool) {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	c, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var b [closeAlert + 8]byte
	err = raw.Read(func(fd uintptr) (done bool) {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false
		}
		closed = err != nil || n == 0 || farewell(b[:n])
		return true
	})
	return closed && err == nil
}

// closeAlert is how long the record of TLS 1.3 is by which a client says that it leaves.
const closeAlert = 24

// farewell says whether all that has arrived is an alert of TLS, the last record of a client: in the
// clear up to version 1.2, and since 1.3 encrypted, where its length tells.
func farewell(b []byte) bool {
	const alert, data = 21, 23
	if len(b) < 5 || b[1] != 3 {
		return false
	}
	return b[0] == alert || b[0] == data && len(b) == closeAlert && b[3] == 0 && b[4] == closeAlert-5
}
