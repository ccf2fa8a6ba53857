package gocontainer

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestTokenFile: the file comes after the first attempt to connect, and each
// connection shows what it holds then.
func TestTokenFile(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	require.NoError(t, ln.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)))
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv("TOPSAIL_SIDECAR", ln.Addr().String())
	t.Setenv("TOPSAIL_TOKEN_FILE", file)
	cfg, err := FromEnv()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, cfg, func([]serving.Value) []Result { return nil }) }()

	if token, err := accept(t, ln); err == nil {
		t.Errorf("said HELLO with %q before the file was there", token)
	}
	for _, want := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(file, []byte(want+"\n"), 0o600))
		token := ""
		for token != want { // a connection may have begun before the file was written
			token, _ = accept(t, ln)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// accept takes one connection up to its HELLO, and hangs up.
func accept(t *testing.T, ln net.Listener) (token string, err error) {
	t.Helper()
	nc, err := ln.Accept()
	require.NoError(t, err)
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = rpc.Accept(ctx, nc, rpc.Hello{Minor: rpc.Minor, Role: rpc.RoleSidecar, MaxFrame: rpc.MaxFrame}, func(theirs rpc.Hello) error {
		token = string(theirs.Token)
		return nil
	})
	return token, err
}
