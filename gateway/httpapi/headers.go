package httpapi

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/serving"
)

const (
	requestIDHeader = "X-Request-Id"
	timeoutHeader   = "X-Timeout-Ms"
	priorityHeader  = "X-Priority"
)

// headers are those of a request that are looked at on the way of each. They die with it.
type headers struct{ key, authorization, accept, timing, timeout, priority, id, origin, site []byte }

// read finds them all in one look, where fasthttp would go through all of them for each. The first of several
// counts, as it does there.
func (h *headers) read(from *fasthttp.RequestHeader) {
	*h = headers{}
	for name, value := range from.All() {
		var field *[]byte
		switch string(name) {
		case "X-Api-Key":
			field = &h.key
		case fiber.HeaderAuthorization:
			field = &h.authorization
		case fiber.HeaderAccept:
			field = &h.accept
		case timingHeader:
			field = &h.timing
		case timeoutHeader:
			field = &h.timeout
		case priorityHeader:
			field = &h.priority
		case requestIDHeader:
			field = &h.id
		case fiber.HeaderOrigin:
			field = &h.origin
		case "Sec-Fetch-Site":
			field = &h.site
		default:
			continue
		}
		if *field == nil {
			*field = value
		}
	}
}

// clientRequestID returns the id that the client gave its request, if it is one
// that can stand in a header and a log, else nil. It dies with the request.
func clientRequestID(rc *fasthttp.RequestCtx) []byte {
	id := rc.Conn().(*conn).headers.id
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

// headerTimeout is the limit that the client sets in a header, 0 if it sets none.
func headerTimeout(rc *fasthttp.RequestCtx) (time.Duration, error) {
	value := rc.Conn().(*conn).headers.timeout
	if len(value) == 0 {
		return 0, nil
	}
	ms, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil || ms == 0 {
		return 0, &refusal{fiber.StatusBadRequest, "Bad request", timeoutHeader + " must be a whole number of milliseconds above 0"}
	}
	// Limits only shorten, so one above what any app may have is as good as none.
	ms = min(ms, uint64(serving.MaxSLO.Milliseconds()))
	return time.Duration(ms) * time.Millisecond, nil
}

// headerPriority is the priority that the client sets in a header, 0 if it sets none.
func headerPriority(rc *fasthttp.RequestCtx) (int, error) {
	value := rc.Conn().(*conn).headers.priority
	if len(value) == 0 {
		return 0, nil
	}
	if len(value) > 1 || value[0] < '0' || value[0] > '0'+serving.LowestPriority {
		return 0, &refusal{fiber.StatusBadRequest, "Bad request", priorityHeader + " must be between 0, the highest, and 3"}
	}
	return int(value[0] - '0'), nil
}
