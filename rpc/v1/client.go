package v1

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// ErrClosed is returned by a Client that has failed before or was shut down.
// Dial another one.
var ErrClosed = errors.New("rpc/v1: the connection is closed")

// Client is one connection to a container. One goroutine uses it at a time; only
// Close may be called beside a call in progress.
//
// The first failure closes the connection for good, so that what is left of a
// late or wrong reply is never taken for the reply to another batch.
type Client struct {
	conn    net.Conn
	raw     syscall.RawConn // of conn
	failure error           // why the connection is closed; nil while it is open
	request []byte          // reused
	reply   []byte          // reused
}

// Dial connects to the container that listens at addr, a host and port.
func Dial(ctx context.Context, addr string) (*Client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("rpc/v1: connect to the container: %w", err)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("rpc/v1: connect to the container: %w", err)
	}
	return &Client{conn: conn, raw: raw}, nil
}

// PredictBatch sends one batch and waits for its outputs, one per input, until
// ctx ends. The arguments are those of AppendBatch. A batch that cannot be encoded
// and a ctx that has ended already leave the connection as it is; any other error
// closes it.
func (c *Client) PredictBatch(ctx context.Context, t serving.InputType, length int, inputs [][]byte) ([]float64, error) {
	request, err := AppendBatch(c.request[:0], t, length, inputs)
	if err != nil {
		return nil, err
	}
	c.request = request
	reply, err := c.exchange(ctx, len(inputs)*outputSize)
	if err != nil {
		return nil, err
	}
	return DecodeReply(reply, len(inputs))
}

// Shutdown asks the container to end, waits for its word until ctx ends, and
// closes the connection in any case.
func (c *Client) Shutdown(ctx context.Context) error {
	c.request = append(c.request[:0], byte(Shutdown), 0, 0, 0, 0)
	reply, err := c.exchange(ctx, 4)
	if err != nil {
		return err
	}
	_ = c.fail(errors.New("the container was shut down")) // for calls after this one
	if got := binary.LittleEndian.Uint32(reply); got != shutdownAck {
		return fmt.Errorf("rpc/v1: the container answered %d to the shutdown instead of %d", got, shutdownAck)
	}
	return nil
}

// Check says why no batch can be sent any more, or nil. What it finds wrong, such as the
// container's end, closes the connection.
func (c *Client) Check() error {
	if c.failure != nil {
		return fmt.Errorf("%w: %w", ErrClosed, c.failure)
	}
	if err := quiet(c.raw); err != nil {
		return c.fail(fmt.Errorf("rpc/v1: %w", err))
	}
	return nil
}

// Close closes the connection and interrupts a call in progress.
func (c *Client) Close() error { return c.conn.Close() }

// exchange sends c.request and returns the want bytes of the reply, which are
// valid until the next exchange.
func (c *Client) exchange(ctx context.Context, want int) ([]byte, error) {
	if c.failure != nil {
		return nil, fmt.Errorf("%w: %w", ErrClosed, c.failure)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("rpc/v1: nothing was sent: %w", context.Cause(ctx))
	}
	release := c.interruptible(ctx)
	defer release()
	if err := c.send(); err != nil {
		return nil, c.fail(fmt.Errorf("rpc/v1: send the request: %w", reason(ctx, err)))
	}
	got, err := c.receive(want)
	if err != nil {
		return nil, c.fail(fmt.Errorf("rpc/v1: received %d of %d reply bytes: %w", got, want, reason(ctx, err)))
	}
	return c.reply[:want], nil
}

// interruptible makes reads and writes fail when ctx ends, until release.
func (c *Client) interruptible(ctx context.Context) (release func()) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection
		close(interrupted)
	})
	return func() {
		if stop() {
			return
		}
		// The reply may have come just before: the connection is then still good.
		<-interrupted
		_ = c.conn.SetDeadline(time.Time{})
	}
}

func (c *Client) send() error {
	if err := quiet(c.raw); err != nil {
		return err
	}
	_, err := c.conn.Write(c.request)
	return err
}

// receive reads want bytes and has room for one more, to notice a surplus that
// comes with them. One that comes later is found before the next batch.
func (c *Client) receive(want int) (got int, err error) {
	c.reply = slices.Grow(c.reply[:0], want+1)[:want+1]
	got, err = io.ReadAtLeast(c.conn, c.reply, want)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return got, fmt.Errorf("%w: %w", errGone, io.ErrUnexpectedEOF)
	case err == nil && got > want:
		return got, errSurplus
	}
	return got, err
}

// fail closes the connection for good and returns err, the reason.
func (c *Client) fail(err error) error {
	c.failure = err
	c.conn.Close()
	return err
}

// reason is the end of ctx when that is what made err.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}
