package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

const (
	maxLine = 16 << 10 // bytes of a header line
	maxBody = 16 << 20
)

// errHTTP is anything that this client does not understand.
var errHTTP = errors.New("not the HTTP/1.1 that is spoken here")

// message is one HTTP/1.1 request or reply with a content length.
type message struct {
	status int // of a reply
	body   []byte
	closes bool // the connection ends after it
}

// readMessage reads one message. Its body is in buf's memory, or in larger memory.
func readMessage(r *bufio.Reader, buf []byte) (message, error) {
	line, err := readLine(r)
	if err != nil {
		return message{}, err
	}
	m := message{status: statusOf(line)}
	size := -1
	for {
		if line, err = readLine(r); err != nil {
			return m, err
		}
		if len(line) == 0 {
			break
		}
		if err := m.header(line, &size); err != nil {
			return m, err
		}
	}
	if size < 0 {
		return m, fmt.Errorf("%w: no content length", errHTTP)
	}
	m.body = slices.Grow(buf[:0], size)[:size]
	_, err = io.ReadFull(r, m.body)
	return m, err
}

// header takes from a header line what matters for reading on.
func (m *message) header(line []byte, size *int) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("content-length")):
		n, err := strconv.Atoi(string(value))
		if err != nil || n < 0 || n > maxBody {
			return fmt.Errorf("%w: content length %q", errHTTP, value)
		}
		*size = n
	case bytes.EqualFold(name, []byte("transfer-encoding")):
		return fmt.Errorf("%w: transfer encoding %q", errHTTP, value)
	case bytes.EqualFold(name, []byte("connection")):
		m.closes = bytes.EqualFold(value, []byte("close"))
	}
	return nil
}

// readLine returns the next line without its end, valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: a header line of more than %d bytes", errHTTP, maxLine)
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// statusOf finds the status in the first line of a reply, or 0.
func statusOf(line []byte) int {
	rest, ok := bytes.CutPrefix(line, []byte("HTTP/1."))
	if !ok || len(rest) < 5 {
		return 0
	}
	status, err := strconv.Atoi(string(rest[2:5]))
	if err != nil {
		return 0
	}
	return status
}
