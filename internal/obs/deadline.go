package obs

import (
	"io"
	"net/http"
	"time"
)

const (
	// stall is how long a client may take for a piece of a body or of an answer.
	stall = 30 * time.Second
	// piece is how many bytes such a piece has; the last one may have fewer.
	piece = 64 << 10
	// unwanted is how many bytes of a body are read that is not wanted.
	unwanted = 16 << 20
)

// deadlines cuts clients off that do not go on sending what they began to send, or
// reading what they asked for. A client that goes on may take as long as it takes: a bundle,
// or a stream of events.
func deadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, control: c}
			body.extend()
			r.Body = body
			if r.Header.Get("Expect") == "" { // else the client asks first
				defer body.drain()
			}
		}
		answer := &pacedAnswer{ResponseWriter: w, control: c}
		answer.extend(stall)           // the one before on this connection may have left a deadline
		defer answer.extend(2 * stall) // the server waits for what is left of the body first
		next.ServeHTTP(answer, r)
	})
}

// pacedBody is a body that must arrive piece by piece.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	got     int  // of the piece
	over    bool // nothing more can be read
}

// extend gives the client time for another piece. A connection without deadlines, as
// in tests, has none to miss.
func (b *pacedBody) extend() {
	b.got = 0
	_ = b.control.SetReadDeadline(time.Now().Add(stall))
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.got += n
	b.over = err != nil
	switch {
	case err == io.EOF: // the server now waits for the client to leave, or to send another request
		_ = b.control.SetReadDeadline(time.Time{})
	case err == nil && b.got >= piece:
		b.extend()
	}
	return n, err
}

// drain reads what is left, so that a client that sends everything before it reads gets to read
// why that was in vain. All of it has the time of one piece, because any client may send it.
func (b *pacedBody) drain() {
	if b.over {
		return
	}
	b.extend()
	_, _ = io.CopyN(io.Discard, b.ReadCloser, unwanted) // what is left then ends the connection
}

// pacedAnswer is an answer that must be read piece by piece.
type pacedAnswer struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap lets http.ResponseController find what can flush.
func (a *pacedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *pacedAnswer) extend(by time.Duration) {
	_ = a.control.SetWriteDeadline(time.Now().Add(by))
}

func (a *pacedAnswer) WriteHeader(status int) {
	a.extend(stall)
	a.ResponseWriter.WriteHeader(status)
}

func (a *pacedAnswer) Write(b []byte) (int, error) {
	written := 0
	for {
		a.extend(stall)
		n, err := a.ResponseWriter.Write(b[:min(len(b), piece)])
		written += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}
