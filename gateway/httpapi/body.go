package httpapi

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/budget"
)

const (
	// smallBody is what fasthttp reads of a body before it calls us. Requests and answers up to
	// that need nothing of the budget, as connections are bounded: there is always room for them.
	smallBody = 8 << 10
	// bodyGrace and bodySpeed are the least speed of a body: so many bytes a second, after a
	// time in which it may begin.
	bodyGrace = 2 * time.Second
	bodySpeed = 32 << 10
	// grows is how many times as much room as a body has filled is made for what is to come.
	grows = 8
)

// comesLater says whether a body is read only once it is known to be wanted.
func (s *Server) comesLater(h *fasthttp.RequestHeader) bool {
	n := h.ContentLength()
	return n == chunked || n > min(smallBody, s.config.MaxBodyBytes)
}

// body returns the request's body, inflated. It dies with the request.
func (s *Server) body(rc *fasthttp.RequestCtx, c *conn) ([]byte, error) {
	encoding := rc.Request.Header.ContentEncoding()
	if len(encoding) == 0 {
		return s.arrived(rc, c)
	}
	var open func(io.Reader) (io.ReadCloser, error)
	switch strings.ToLower(string(encoding)) {
	case "identity":
		return s.arrived(rc, c)
	case "gzip":
		open = func(b io.Reader) (io.ReadCloser, error) { return gzip.NewReader(b) }
	case "deflate":
		open = zlib.NewReader
	default:
		return nil, &refusal{fiber.StatusUnsupportedMediaType, "Unsupported encoding", "Content-Encoding must be gzip, deflate or none"}
	}
	compressed, err := s.arrived(rc, c)
	if err != nil {
		return nil, err
	}
	return s.inflate(compressed, c, open)
}

// arrived returns the body as it comes. A small one has come already.
func (s *Server) arrived(rc *fasthttp.RequestCtx, c *conn) ([]byte, error) {
	if !c.unread {
		return rc.Request.Body(), nil
	}
	length := rc.Request.Header.ContentLength()
	if length > s.config.MaxBodyBytes {
		return nil, s.errTooLarge()
	}
	s.reading.Add(1)
	body, err := s.readAll(&steadyReader{from: rc.RequestBodyStream(), s: s, c: c, left: max(length, 0), began: time.Now(), until: rc.Time().Add(s.config.ReadTimeout)}, length, c.came, &c.lease, c.kept[:0])
	s.reading.Add(-1)
	c.unread, c.came = err != nil, len(body)
	if cap(body) <= keepBytes {
		c.kept = body
	} else {
		c.large = body
	}
	return body, err
}

// keepBody says that the body of the request at hand is used for longer than that, if it is one that would be used again.
func (c *conn) keepBody() bool {
	large := c.large != nil
	c.large = nil
	return large
}

// readAll reads into b, which grows with what comes, whatever length is announced; -1: none
// is. There is room for as much as came before at once.
func (s *Server) readAll(r io.Reader, length, before int, lease *budget.Lease, b []byte) ([]byte, error) {
	most := s.config.MaxBodyBytes
	if length >= 0 {
		most = length
	}
	room := cap(b) // that is taken, of what b has
	for {
		if len(b) == room {
			size := min(max(grows*len(b), 2*smallBody, before), most+1) // 1 more, to see the end
			if !lease.Take(size - room) {
				return nil, errNoMemory
			}
			b, room = s.grown(b, size), size
		}
		n, err := r.Read(b[len(b):room])
		b = b[:len(b)+n]
		switch {
		case len(b) > most:
			return nil, s.errTooLarge()
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}

// grown is b with room for size bytes. A large one is of a body before, if there is one: fresh memory costs more
// than reading a body into it.
func (s *Server) grown(b []byte, size int) []byte {
	if cap(b) >= size {
		return b
	}
	if size > keepBytes {
		if used, _ := s.bodies.Get().(*[]byte); used != nil && cap(*used) >= size {
			return append((*used)[:0], b...)
		}
	}
	return append(make([]byte, 0, size), b...)
}

// steadyReader reads a body that has to come at some speed.
type steadyReader struct {
	from         io.Reader
	s            *Server
	c            *conn
	left         int // of a body whose length is known
	began, until time.Time
	read         int
}

func (r *steadyReader) Read(b []byte) (int, error) {
	due := r.began.Add(bodyGrace + time.Duration(r.read)*time.Second/bodySpeed)
	if r.until.Before(due) {
		due = r.until
	}
	if err := r.c.SetReadDeadline(due); err != nil {
		return 0, err
	}
	r.c.body = r.left // what is buffered of it, Read is not asked for
	n, err := r.from.Read(b)
	r.c.body = 0
	r.read, r.left = r.read+n, max(r.left-n, 0)
	if busy := int(r.s.reading.Load()) >= runtime.GOMAXPROCS(0); busy && r.read%breatheEvery < n {
		breathe()
	}
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, &refusal{fiber.StatusRequestTimeout, "Request timeout", fmt.Sprintf("the body arrived too slowly: send at least %d bytes a second, and the whole request within %v", bodySpeed, r.until.Sub(r.began).Round(time.Second))}
	}
	return n, fiber.ErrBadRequest
}

// inflate reads no further than one byte beyond the limit for bodies, whatever
// the compressed body claims to hold.
func (s *Server) inflate(compressed []byte, c *conn, open func(io.Reader) (io.ReadCloser, error)) ([]byte, error) {
	rest := bytes.NewReader(compressed)
	r, err := open(rest)
	if err != nil {
		return nil, errCorrupt()
	}
	body, err := s.readAll(&slotReader{Reader: r, s: s, c: c}, -1, 0, &c.lease, nil)
	if _, refused := errors.AsType[*refusal](err); refused || errors.Is(err, errNoMemory) || errors.Is(err, errNoSlot) {
		return nil, err
	}
	if err != nil || rest.Len() > 0 {
		return nil, errCorrupt()
	}
	return body, nil
}

// errNoMemory refuses a request that the budget has no room for.
var errNoMemory = errors.New("max_inflight_bytes is used up")

func errCorrupt() error {
	return &refusal{fiber.StatusBadRequest, "Bad request", "the body does not match its Content-Encoding: it is truncated, damaged or followed by other bytes"}
}

func (s *Server) errTooLarge() *refusal {
	return &refusal{fiber.StatusRequestEntityTooLarge, "Body too large",
		fmt.Sprintf("the body has more than %d bytes: send several smaller requests, or raise max_body_bytes", s.config.MaxBodyBytes)}
}
