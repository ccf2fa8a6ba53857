package httpapi

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/pipes"
)

// bubble runs f with a server whose time is false and whose connections are pipes.
func bubble(t *testing.T, config Config, core *fakeCore, f func(t *testing.T, s *piped)) {
	t.Helper()
	pipes.Bubble(t, func(t *testing.T) {
		ln := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		s := &piped{ln: ln, log: &journal.Journal{}, stop: cancel, done: sync.OnceValue(func() error { return <-done })}
		server := New(config, core, core.updater, slog.New(slog.NewTextHandler(s.log, nil)))
		if core.catalog != nil {
			server.Serve(core.catalog)
		}
		s.server = server
		go func() { done <- server.Run(ctx, ln) }()
		f(t, s)
		s.stop()
		s.done()
	})
}

// piped is a server in a bubble.
type piped struct {
	server *Server
	ln     *pipeListener
	log    *journal.Journal
	stop   context.CancelFunc
	done   func() error // waits for Run and returns what it did
}

func (s *piped) dial() *client {
	ours, theirs := net.Pipe()
	s.ln.conns <- theirs
	return newClient(ours)
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	errs   []error // what Accept returns first
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
