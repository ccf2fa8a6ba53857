package api

import (
	"net/http"
	"time"
)

// streamLasts ends answers that go on, so that clients show their keys again.
const streamLasts = time.Hour

// stream is an answer that goes on, piece by piece.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newStream begins the answer.
func newStream(w http.ResponseWriter, kind string) *stream {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Accel-Buffering", "no") // proxies are to pass pieces on as they come
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, control: http.NewResponseController(w)}
}

// send sends a piece at once. It fails when the client has left or, where the server
// sees to that, does not read.
func (s *stream) send(piece []byte) error {
	if _, err := s.w.Write(piece); err != nil {
		return err
	}
	return s.control.Flush()
}
