package apiclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// MaxEvent bounds one event, in bytes: the first of a stream has the whole catalog.
	MaxEvent = 64 << 20
	// silence is how long a stream may say nothing; the server says something every 15 s.
	silence = 45 * time.Second
)

// Event is one server-sent event.
type Event struct {
	Topic string // "message" where the server names none
	Data  []byte // its lines, joined by \n; the receiver's
}

// Events calls fn with each event of a stream until ctx ends, fn fails or the stream
// breaks, which is an *Away.
func (c *Client) Events(ctx context.Context, fn func(Event) error, path ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := c.Open(ctx, Request{Path: path, Accept: "text/event-stream"})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	quiet := time.AfterFunc(silence, func() { response.Body.Close() })
	defer quiet.Stop()
	heard := func(p []byte) { quiet.Reset(silence) }
	err = ReadEvents(&listener{response.Body, heard}, fn)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errBroken) {
		return &Away{Server: c.server, Next: c.next, Err: err}
	}
	return err
}

// listener reports what is read.
type listener struct {
	io.Reader
	heard func([]byte)
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.heard(p[:n])
	}
	return n, err
}

// errBroken is a stream that ended on its own.
var errBroken = errors.New("the stream of events ended")

// ReadEvents calls fn with each event that r has. It ends with what fn returned, or with
// an error that says that the stream ended; an event that was not finished is dropped.
func ReadEvents(r io.Reader, fn func(Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxEvent)
	var event Event
	var some bool
	for lines.Scan() {
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		if len(line) == 0 {
			if some {
				if err := fn(event.finished()); err != nil {
					return err
				}
			}
			event, some = Event{}, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			event.Topic = string(value)
		case "data":
			if some {
				event.Data = append(event.Data, '\n')
			}
			event.Data, some = append(event.Data, value...), true
		}
		if len(event.Data) > MaxEvent {
			return fmt.Errorf("an event is larger than %d bytes", MaxEvent)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("an event is larger than %d bytes", MaxEvent)
	} else if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return errBroken
}

func (e Event) finished() Event {
	if e.Topic == "" {
		e.Topic = "message"
	}
	if e.Data == nil {
		e.Data = []byte{}
	}
	return e
}
