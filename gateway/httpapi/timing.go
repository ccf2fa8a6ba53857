package httpapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// timingHeader asks with the value 1 for where the time went, which is answered in
	// the other one.
	timingHeader       = "X-Topsail-Timing"
	serverTimingHeader = "Server-Timing"
)

// timingOf is where the time of a request goes that has been read, or nil if its client does not ask for it.
func timingOf(rc *fasthttp.RequestCtx) *serving.Timing {
	if string(rc.Conn().(*conn).headers.timing) != "1" {
		return nil
	}
	return &serving.Timing{Received: rc.Time(), Decoded: time.Now()}
}

// sendTiming says in a header where the time went until now, if t is not nil.
func sendTiming(rc *fasthttp.RequestCtx, t *serving.Timing) {
	if t != nil {
		t.Encoded = time.Now()
		rc.Response.Header.SetBytesV(serverTimingHeader, appendTiming(nil, t))
	}
}

// appendTiming appends the value of a Server-Timing header: the stages in order, then
// all of them together, in milliseconds.
func appendTiming(b []byte, t *serving.Timing) []byte {
	for _, stage := range t.Stages() {
		b = append(appendStage(b, stage), ", "...)
	}
	return appendStage(b, serving.TimedStage{Name: "total", Took: max(t.Encoded.Sub(t.Received), 0)})
}

func appendStage(b []byte, s serving.TimedStage) []byte {
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
