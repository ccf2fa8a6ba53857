package httpapi

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

const requestIDHeader = "X-Request-Id"

// clientRequestID returns the id that the client gave its request, if it is one
// that can stand in a header and a log, else nil. It dies with the request.
func clientRequestID(rc *fasthttp.RequestCtx) []byte {
	id := rc.Request.Header.Peek(requestIDHeader)
	if len(id) == 0 || len(id) > 128 {
		return nil
	}
	for _, c := range id {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !(c >= '0' && c <= ':') && c != '.' && c != '_' && c != '-' { // ':' follows '9'
			return nil
		}
	}
	return id
}

// requestID is the client's id or else a new one. The answer carries it.
func requestID(rc *fasthttp.RequestCtx) string {
	id := string(clientRequestID(rc))
	if id == "" {
		id = newRequestID(time.Now())
	}
	rc.Response.Header.Set(requestIDHeader, id)
	return id
}

// newRequestID makes a UUID of version 7: milliseconds, then random bits.
func newRequestID(now time.Time) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16)
	rand.Read(id[6:]) // never fails
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
