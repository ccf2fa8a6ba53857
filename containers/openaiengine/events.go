package openaiengine

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds the data of one event, and a line.
const maxEvent = 1 << 20

var errEventTooLarge = errors.New("the engine sent an event above 1 MiB")

// events reads the data of server-sent events.
type events struct {
	in     *bufio.Reader
	seen   func() // of each line
	line   []byte // of a line that is longer than the buffer of in
	data   []byte
	lines  int // in data
	failed error
}

func newEvents(in io.Reader, seen func()) *events {
	return &events{in: bufio.NewReader(in), seen: seen}
}

// next is the data of the next event, valid until the next call. After the last one it is io.EOF.
func (e *events) next() ([]byte, error) {
	e.data, e.lines = e.data[:0], 0
	for {
		line, err := e.readLine()
		if len(line) > 0 {
			if err := e.take(line); err != nil {
				return nil, err
			}
		}
		switch {
		case err != nil && e.lines > 0:
			return e.data, nil // what it lacks shows in the data
		case err != nil:
			return nil, err
		case len(line) == 0 && e.lines > 0:
			return e.data, nil
		}
	}
}

// take takes in a line. Comments, and fields other than the data, mean nothing here.
func (e *events) take(line []byte) error {
	text, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(text) > 0 && text[0] != ':' {
		return nil
	}
	text = bytes.TrimPrefix(bytes.TrimPrefix(text, []byte(":")), []byte(" "))
	if len(e.data)+len(text) >= maxEvent {
		return errEventTooLarge
	}
	if e.lines > 0 {
		e.data = append(e.data, '\n')
	}
	e.data, e.lines = append(e.data, text...), e.lines+1
	return nil
}

// readLine reads a line without its end. With an error, it is what came before that.
func (e *events) readLine() ([]byte, error) {
	if e.failed != nil {
		return nil, e.failed
	}
	e.line = e.line[:0]
	for {
		b, err := e.in.ReadSlice('\n')
		if len(e.line)+len(b) > maxEvent {
			e.failed = errEventTooLarge
			return nil, e.failed
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			e.line = append(e.line, b...)
			continue
		}
		e.seen()
		if len(e.line) > 0 {
			e.line = append(e.line, b...)
			b = e.line
		}
		e.failed = err
		return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")), err
	}
}
