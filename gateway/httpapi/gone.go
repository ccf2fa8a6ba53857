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
