package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/topsail-serving/topsail/gateway/describe"
	"github.com/topsail-serving/topsail/internal/budget"
)

// document answers GET /openapi.json: what the caller may ask here, and how.
func (s *Server) document(c *fiber.Ctx) error {
	rc := c.Context()
	who, err := s.asker(rc)
	if err != nil {
		return err
	}
	apps, err := s.admission.Visible(who, s.core.App)
	if err != nil {
		return err
	}
	d := describe.Document{
		MaxBatch: s.config.MaxBatch, Feedback: s.updater != nil, Metrics: s.config.Inspect != nil,
		Keys: s.keys(), Apps: apps, Catalog: s.admission.Catalog(),
	}
	out := leased{b: buffer(rc), lease: &rc.Conn().(*conn).lease}
	if err := out.grow(bytesOfPort + len(apps)*bytesOfApp); err != nil {
		return err
	}
	if err := d.Write(&out); err != nil {
		return err
	}
	rc.Response.Header.Set(fiber.HeaderCacheControl, "no-store") // other callers see other apps
	send(rc, fiber.StatusOK, out.b)
	return nil
}

// keys says which requests need a key.
func (s *Server) keys() describe.Keys {
	switch {
	case s.admission.AllNeedKeys():
		return describe.AllKeys
	case s.admission.SomeNeedKeys():
		return describe.SomeKeys
	}
	return describe.NoKeys
}

// bytesOfPort and bytesOfApp are about what a document takes without apps, and what an app
// adds to it.
const (
	bytesOfPort = 16 << 10
	bytesOfApp  = 2200
)

// leased collects an answer of any length, whose memory is taken from the request's lease as
// it grows.
type leased struct {
	b     []byte
	lease *budget.Lease
}

// grow makes room for n bytes more.
func (l *leased) grow(n int) error {
	need := len(l.b) + n
	if need <= cap(l.b) {
		return nil
	}
	size := max(cap(l.b)+cap(l.b)/4, need)
	if !l.lease.Take(size - cap(l.b)) {
		return errNoMemory
	}
	l.b = append(make([]byte, 0, size), l.b...)
	return nil
}

func (l *leased) Write(p []byte) (int, error) {
	if err := l.grow(len(p)); err != nil {
		return 0, err
	}
	l.b = append(l.b, p...)
	return len(p), nil
}
