package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

const (
	maxLines     = 10_000
	defaultLines = 100
	logsWithin   = time.Minute // for what is not followed
	logPiece     = 32 << 10    // bytes
)

// readLogs passes a replica's output on as it comes.
func (l *live) readLogs(w http.ResponseWriter, r *http.Request) error {
	query, err := logQuery(r)
	if err != nil {
		return err
	}
	one, err := l.replica(r)
	if err != nil {
		return err
	}
	select {
	case l.readers <- struct{}{}:
		defer func() { <-l.readers }()
	default:
		return rest.Later(http.StatusServiceUnavailable, "too_many", fmt.Sprintf("%d clients already read logs; try again later", maxReaders))
	}
	ctx, cancel := l.reading(r, query.Follow)
	defer cancel()
	logs, err := l.Replicas.Logs(ctx, one.ID, query)
	if err != nil {
		return err
	}
	defer logs.Close()
	out := newStream(w, "text/plain; charset=utf-8")
	if r.Method != http.MethodHead {
		out.pass(logs)
	}
	return nil
}

func logQuery(r *http.Request) (query LogQuery, err error) {
	if query.Lines, err = rest.Number(r, "lines", 0, maxLines, defaultLines); err != nil {
		return LogQuery{}, err
	}
	if query.Follow, err = rest.Flag(r, "follow"); err != nil {
		return LogQuery{}, err
	}
	query.Stream, err = rest.Choice(r, "stream", "all", []string{"all", "stdout", "stderr", "sidecar"})
	return query, err
}

// reading is for how long logs are read: until the client leaves or may no longer, or we stop.
func (l *live) reading(r *http.Request, follow bool) (context.Context, context.CancelFunc) {
	if !follow || r.Method == http.MethodHead {
		return context.WithTimeout(r.Context(), logsWithin)
	}
	ctx, cancel := context.WithTimeout(r.Context(), streamLasts)
	caller := auth.Of(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		check := time.NewTicker(checkEvery)
		defer check.Stop()
		for l.holds(caller) {
			select {
			case <-check.C:
			case <-l.over:
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	return ctx, func() { cancel(); <-ended }
}

// pass sends what comes as it comes, to the end. The answer has begun, so that nothing
// can be said any more about what goes wrong.
func (s *stream) pass(from io.Reader) {
	if s.control.Flush() != nil {
		return
	}
	piece := make([]byte, logPiece)
	for {
		n, err := from.Read(piece)
		if n > 0 && s.send(piece[:n]) != nil || err != nil {
			return
		}
	}
}
