package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/netio"
)

// errGone ends what is done for a client that has left.
var errGone = errors.New("the client has closed the connection")

// whileThere is ctx until the client of the connection leaves, which fasthttp does not notice while a
// request is being answered. stop has to be called before anything else reads the connection.
func (c *conn) whileThere(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	// An error of a deadline means that the connection has ended, as the next read or write says.
	_ = c.Conn.SetReadDeadline(time.Time{})
	var watching sync.WaitGroup
	watching.Go(func() {
		if netio.AwaitClose(c.Conn) {
			cancel(errGone)
		}
	})
	return ctx, sync.OnceFunc(func() {
		cancel(nil)
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // ends the watch
		watching.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.Conn.SetReadDeadline(c.set)
	})
}

// present is the context of a request, which ends when its client leaves. That is watched for from the moment that something
// waits for the end: most queries are answered before.
type present struct {
	context.Context // of the server
	client          *conn

	mu      sync.Mutex      // guards the following
	watched context.Context // nil: not yet
	stop    func()
}

// present makes the context of the request that the connection has now, for answers that are not written in parts. end has to
// be called when it is answered.
func (c *conn) present(ctx context.Context) *present {
	p := &c.request
	p.Context, p.client, p.watched, p.stop = ctx, c, nil, nil
	return p
}

func (p *present) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched == nil {
		p.watched, p.stop = p.client.whileThere(p.Context)
	}
	return p.watched.Done()
}

func (p *present) Err() error { return p.now().Err() }

// Value has the cause of the end, too.
func (p *present) Value(key any) any { return p.now().Value(key) }

func (p *present) now() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched != nil {
		return p.watched
	}
	return p.Context
}

// end ends the watch, if there is one.
func (p *present) end() {
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
}
