package httpapi

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/serving"
)

const timeoutHeader = "X-Timeout-Ms"

// headerTimeout is the limit that the client sets in a header, 0 if it sets none.
func headerTimeout(rc *fasthttp.RequestCtx) (time.Duration, error) {
	value := rc.Request.Header.Peek(timeoutHeader)
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
