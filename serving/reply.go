package serving

import (
	"errors"
	"time"
)

// Reply is the answer to a request that may be sent again, and then gets it again.
type Reply struct {
	Fingerprint string            `json:"fingerprint"` // of the request
	Status      int               `json:"status"`      // 0 while the first one is not answered
	Header      map[string]string `json:"header,omitempty"`
	Body        []byte            `json:"body,omitempty"`
}

const (
	// ReplyKept is how long replies are kept.
	ReplyKept = 24 * time.Hour
	// ReplyClaimed is how long a request that is not answered keeps others with its name out.
	ReplyClaimed = time.Minute
)

// ErrTooManyReplies says that no more names of requests can be kept for now.
var ErrTooManyReplies = errors.New("too many requests with an Idempotency-Key")
