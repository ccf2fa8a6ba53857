package httpapi

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// body returns the request's body, inflated. Without a Content-Encoding it is
// fasthttp's own buffer, which dies with the request.
func (s *Server) body(r *fasthttp.Request) ([]byte, error) {
	encoding := r.Header.ContentEncoding()
	if len(encoding) == 0 {
		return r.Body(), nil
	}
	switch strings.ToLower(string(encoding)) {
	case "identity":
		return r.Body(), nil
	case "gzip":
		return s.inflate(r.Body(), func(b io.Reader) (io.ReadCloser, error) { return gzip.NewReader(b) })
	case "deflate":
		return s.inflate(r.Body(), zlib.NewReader)
	}
	return nil, &refusal{fiber.StatusUnsupportedMediaType, "Unsupported encoding", "Content-Encoding must be gzip, deflate or none"}
}

// inflate reads no further than one byte beyond the limit for bodies, whatever
// the compressed body claims to hold.
func (s *Server) inflate(compressed []byte, open func(io.Reader) (io.ReadCloser, error)) ([]byte, error) {
	rest := bytes.NewReader(compressed)
	r, err := open(rest)
	if err != nil {
		return nil, errCorrupt()
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(s.config.MaxBodyBytes)+1))
	switch {
	case len(body) > s.config.MaxBodyBytes:
		return nil, s.errTooLarge()
	case err != nil || rest.Len() > 0:
		return nil, errCorrupt()
	}
	return body, nil
}

func errCorrupt() error {
	return &refusal{fiber.StatusBadRequest, "Bad request", "the body is not what its Content-Encoding says: it is cut, damaged or followed by other bytes"}
}

func (s *Server) errTooLarge() *refusal {
	return &refusal{fiber.StatusRequestEntityTooLarge, "Body too large",
		fmt.Sprintf("the body has more than %d bytes: send several smaller requests, or raise max_body_bytes", s.config.MaxBodyBytes)}
}
