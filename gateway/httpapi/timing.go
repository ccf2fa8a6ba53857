package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/gateway/timing"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// timingHeader asks with the value 1 for where the time went, which is answered in
	// the other one.
	timingHeader       = "X-Topsail-Timing"
	serverTimingHeader = "Server-Timing"
)

// wantsTiming says whether the client asks for timings.
func wantsTiming(rc *fasthttp.RequestCtx) bool {
	return string(rc.Request.Header.Peek(timingHeader)) == "1"
}

// predictTimed answers a predict request, and says where the time went.
func (s *Server) predictTimed(queries context.Context, c *fiber.Ctx, qs []serving.Query) error {
	t := timing.Timing{Received: c.Context().Time(), Decoded: time.Now()}
	ps, err := s.core.PredictTimed(queries, qs, &t)
	if err != nil {
		return err
	}
	rc := c.Context()
	b, err := s.growReservation(rc, appNameOf(qs), ps...)
	if err != nil {
		return err
	}
	body := codec.AppendBatch(b, ps)
	t.Encoded = time.Now()
	send(rc, fiber.StatusOK, body)
	rc.Response.Header.SetBytesV(serverTimingHeader, appendTiming(nil, &t))
	return nil
}

// appendTiming appends the value of a Server-Timing header: the stages in order, then
// all of them together, in milliseconds.
func appendTiming(b []byte, t *timing.Timing) []byte {
	for _, stage := range t.Stages() {
		b = append(appendStage(b, stage), ", "...)
	}
	return appendStage(b, timing.Stage{Name: "total", Took: max(t.Encoded.Sub(t.Received), 0)})
}

func appendStage(b []byte, s timing.Stage) []byte {
	b = append(append(b, s.Name...), ";dur="...)
	b = strconv.AppendFloat(b, float64(s.Took)/float64(time.Millisecond), 'f', 3, 64)
	if s.Note == "" {
		return b
	}
	b = append(b, `;desc="`...)
	for _, c := range []byte(s.Note) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ' && c <= '~':
			b = append(b, c)
		default: // cannot stand in a header
			b = append(b, '?')
		}
	}
	return append(b, '"')
}
