package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	fetchWithin = 15 * time.Minute // one transfer
	silentFor   = 30 * time.Second // at most
)

// transfer is a model that comes from elsewhere. It breaks off when nothing comes for a
// while, and when it takes too long.
type transfer struct {
	from           string          // as people may read it
	ctx            context.Context // of the request
	cut            context.CancelCauseFunc
	silence, limit *time.Timer
	body           io.ReadCloser
}

// newTransfer makes one that waits for its answer.
func newTransfer(ctx context.Context, from string) *transfer {
	t := &transfer{from: from, body: http.NoBody}
	t.ctx, t.cut = context.WithCancelCause(ctx)
	t.silence = time.AfterFunc(silentFor, func() { t.cut(fmt.Errorf("nothing came for %v", silentFor)) })
	t.limit = time.AfterFunc(fetchWithin, func() { t.cut(fmt.Errorf("it took longer than %v", fetchWithin)) })
	return t
}

// Read implements io.Reader. Its error may pass.
func (t *transfer) Read(b []byte) (int, error) {
	n, err := t.body.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, t.broken(err)
	}
	t.silence.Reset(silentFor)
	return n, err
}

// broken says why it broke off.
func (t *transfer) broken(err error) error {
	if cause := context.Cause(t.ctx); cause != nil {
		err = cause
	}
	return errAway{fmt.Errorf("%s: %w", t.from, err)}
}

// Close implements io.Closer.
func (t *transfer) Close() error {
	t.silence.Stop()
	t.limit.Stop()
	t.cut(nil)
	return t.body.Close()
}
