package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

// commentEvery keeps proxies from taking a quiet stream for a dead one.
const commentEvery = 15 * time.Second

// followEvents sends events to the client until it leaves.
func (l *live) followEvents(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		newStream(w, "text/event-stream")
		return nil
	}
	caller := auth.Of(r.Context())
	s := l.hub.enter(caller)
	if s == nil {
		return rest.Later(http.StatusServiceUnavailable, "too_many", fmt.Sprintf("%d clients already follow events; try again later", maxSubscribers))
	}
	defer l.hub.leave(s)
	out := newStream(w, "text/event-stream")
	comment, check, end := time.NewTicker(commentEvery), time.NewTicker(checkEvery), time.NewTimer(streamLasts)
	defer comment.Stop()
	defer check.Stop()
	defer end.Stop()
	for {
		piece := []byte(":\n\n")
		select {
		case <-r.Context().Done():
			return nil
		case <-l.over:
			return nil
		case <-s.lost:
			return nil
		case <-end.C:
			return nil
		case <-check.C:
			if !l.holds(caller) {
				return nil
			}
			continue
		case <-comment.C:
		case piece = <-s.queue:
		}
		if out.send(piece) != nil {
			return nil // it left
		}
	}
}
