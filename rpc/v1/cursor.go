package v1

import "fmt"

// ProtocolError is a request that does not follow the protocol.
type ProtocolError struct {
	Field  string
	Offset int // of the first byte that is wrong or missing, in the request
	Err    error
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("rpc/v1: bad request: %s at offset %d: %v", e.Field, e.Offset, e.Err)
}

func (e *ProtocolError) Unwrap() error { return e.Err }

func wrong(field string, offset int, format string, args ...any) error {
	return &ProtocolError{Field: field, Offset: offset, Err: fmt.Errorf(format, args...)}
}

// cursor walks the content of a request, which begins base bytes into it.
type cursor struct {
	b    []byte
	off  int
	base int
}

// take returns the next n bytes, which nothing can be appended to in place.
func (c *cursor) take(n int, field string) ([]byte, error) {
	if left := len(c.b) - c.off; n > left {
		return nil, c.fail(field, "needs %d bytes, and %d are left", n, left)
	}
	v := c.b[c.off : c.off+n : c.off+n]
	c.off += n
	return v, nil
}

func (c *cursor) rest() []byte { return c.b[c.off:] }

func (c *cursor) fail(field, format string, args ...any) error {
	return c.failAt(c.off, field, format, args...)
}

func (c *cursor) failAt(off int, field, format string, args ...any) error {
	return wrong(field, c.base+off, format, args...)
}
