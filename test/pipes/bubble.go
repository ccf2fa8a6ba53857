package pipes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// Bubble runs f in a bubble, in which servers of fasthttp may have run when f and its cleanups have ended.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	new(fasthttp.ResponseHeader).Header() // starts fasthttp's clock, which would not end with the bubble
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(11 * time.Second) }) // fasthttp's sweeper of idle workers looks up every 10 s
		f(t)
	})
}
