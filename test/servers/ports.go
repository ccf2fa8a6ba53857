package servers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Ports are drawn from first to last, below those that the kernel gives to outgoing
// connections, so that no connection takes one while its server is stopped.
const firstPort, lastPort = 15000, 28999

// FreePort is a port that is free now; see FreePorts.
func FreePort() (int, error) { return FreePorts(1) }

// FreePorts is the first of n ports in a row that are free now. No other process of this
// user is given the same ones before all others have been given, so that a server may
// take its time until it listens.
func FreePorts(n int) (port int, err error) {
	drawn, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("topsail-ports-%d", os.Getuid())), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer drawn.Close()
	if err := syscall.Flock(int(drawn.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	var last [2]byte // what the file holds: the next port to try
	if _, err := drawn.ReadAt(last[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	next := int(binary.BigEndian.Uint16(last[:]))
	for range (lastPort - firstPort) / n {
		if next < firstPort || next+n > lastPort {
			next = firstPort
		}
		first := next
		next += n
		if !allFree(first, n) {
			continue
		}
		_, err := drawn.WriteAt(binary.BigEndian.AppendUint16(nil, uint16(next)), 0)
		return first, err
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		ln, err := net.Listen("tcp", address(port))
		if err != nil {
			return false
		}
		ln.Close()
	}
	return true
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }
