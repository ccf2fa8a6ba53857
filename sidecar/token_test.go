package sidecar

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/test/require"
)

// A token that changes holds for connections to come; those that stand stay. One
// that is lost lets nobody in.
func TestTheTokenOfGatewaysRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var token atomic.Value
		token.Store("first")
		r := newRig(t, Config{GatewayToken: func() []byte { return []byte(token.Load().(string)) }})
		welcome := func(shown string) bool {
			t.Helper()
			_, err := connect(t, r.dial.gateway(), hello(rpc.RoleGateway, shown))
			if err != nil && token.Load() != "" && !errors.Is(err, rpc.ErrRefused) {
				t.Errorf("%q: %v, want a refusal", shown, err)
			}
			return err == nil
		}
		standing, err := connect(t, r.dial.gateway(), hello(rpc.RoleGateway, "first"))
		require.NoError(t, err)
		if !welcome("first") || welcome("second") {
			t.Error("before the change")
		}
		token.Store("second")
		if welcome("first") || !welcome("second") {
			t.Error("after the change")
		}
		token.Store("")
		if welcome("first") || welcome("second") || welcome("") {
			t.Error("without a token somebody gets in")
		}
		pass(time.Minute)
		if standing.dead() {
			t.Errorf("the connection from before has ended: %v", standing.why)
		}
		r.end()
	})
}

func TestRefusedGatewaysAreLoggedWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer // read when all is done
		s := New(Config{GatewayToken: func() []byte { return []byte("the-right-one") }}, NewMetrics(obs.NewRegistry()), slog.New(slog.NewTextHandler(&log, nil)))
		var serving sync.WaitGroup
		serve := func() net.Conn {
			near, far := net.Pipe()
			serving.Go(func() { s.serveGateway(t.Context(), far) })
			return near
		}
		start := time.Now()
		if _, err := rpc.Connect(t.Context(), serve(), hello(rpc.RoleGateway, "a-wrong-one")); !errors.Is(err, rpc.ErrRefused) || strings.Contains(err.Error(), "one") {
			t.Errorf("a wrong token: %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the refusal took %v", took)
		}
		serve().Close() // a health check
		serving.Wait()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "without the right token") || strings.Contains(text, "-one") {
			t.Errorf("log: %s", text)
		}
	})
}
