package gateway_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/test/pipes"
)

// bubble runs f in a bubble, whose time is virtual and whose network is pipes, with a client on it.
func bubble(t *testing.T, f func(t *testing.T, on network, client *http.Client)) {
	t.Helper()
	new(fasthttp.ResponseHeader).Header() // starts fasthttp's clock, which would not end with the bubble
	synctest.Test(t, func(t *testing.T) {
		var n pipes.Network
		f(t, network{n.Listen, n.Dial}, n.Client())
		time.Sleep(11 * time.Second) // fasthttp's sweeper of idle workers looks up every 10 s
	})
}
