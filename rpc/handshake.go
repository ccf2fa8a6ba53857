package rpc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// handshakeTimeout bounds the wait for the peer's HELLO.
const handshakeTimeout = 5 * time.Second

// maxHello bounds the first frame, which comes before any limit is agreed.
const maxHello = 64 << 10

// ErrRefused wraps the reason of a peer that answered HELLO with BYE.
var ErrRefused = errors.New("rpc: the peer refused the connection")

// Connect opens version 2 as the side that dialled. It closes nc on failure.
func Connect(ctx context.Context, nc net.Conn, mine Hello) (*Conn, error) {
	defer bound(ctx, nc)()
	if _, err := nc.Write(AppendFrame(nil, KindHello, 0, AppendHello(nil, mine))); err != nil {
		nc.Close()
		return nil, fmt.Errorf("rpc: send HELLO: %w", err)
	}
	theirs, err := readHello(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return newConn(nc, mine, theirs), nil
}

// Accept opens version 2 as the side that listens, and refuses a peer that check
// does not like. It closes nc on failure.
func Accept(ctx context.Context, nc net.Conn, mine Hello, check func(Hello) error) (*Conn, error) {
	defer bound(ctx, nc)()
	theirs, err := readHello(nc)
	if err == nil && len(mine.Token) > 0 && subtle.ConstantTimeCompare(mine.Token, theirs.Token) != 1 {
		err = errors.New("rpc: HELLO without the right token")
	}
	if err == nil && check != nil {
		err = check(theirs)
	}
	if err == nil {
		reply := mine
		reply.Token = nil // the secret proves the dialler; it is not sent back
		_, err = nc.Write(AppendFrame(nil, KindHello, 0, AppendHello(nil, reply)))
	} else {
		// The reason is a courtesy; the connection is lost anyway.
		_, _ = nc.Write(AppendFrame(nil, KindBye, 0, AppendBye(nil, err.Error())))
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return newConn(nc, mine, theirs), nil
}

// bound limits the handshake by ctx and by handshakeTimeout; the returned
// function lifts the limit.
func bound(ctx context.Context, nc net.Conn) func() {
	// An error here shows up in the reads and writes that follow.
	_ = nc.SetDeadline(time.Now().Add(handshakeTimeout))
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if stop() {
			_ = nc.SetDeadline(time.Time{})
		}
	}
}

func readHello(nc net.Conn) (Hello, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(nc, header[:]); err != nil {
		return Hello{}, fmt.Errorf("rpc: wait for HELLO: %w", err)
	}
	size, kind, flags := parseHeader(header[:])
	if size > maxHello || flags&FlagCompressed != 0 || (kind != KindHello && kind != KindBye) {
		return Hello{}, &ProtocolError{Frame: "first", Field: "header", Why: "is not that of a HELLO: the peer does not speak this protocol"}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(nc, body); err != nil {
		return Hello{}, fmt.Errorf("rpc: wait for HELLO: %w", err)
	}
	if kind == KindBye {
		reason, err := ParseBye(body)
		if err != nil {
			return Hello{}, err
		}
		return Hello{}, fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	return ParseHello(body)
}
