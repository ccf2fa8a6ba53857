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

// MaxReply bounds what a reply says, in bytes.
const MaxReply = 1 << 20

// Size is how much a reply says: its header and body, in bytes.
func (r Reply) Size() int {
	size := len(r.Body)
	for name, value := range r.Header {
		size += len(name) + len(value)
	}
	return size
}

// NamedReply is a reply with the name of its request.
type NamedReply struct {
	Name string
	Reply
}

const (
	// ReplyKept is how long replies are kept.
	ReplyKept = 24 * time.Hour
	// ReplyClaimed is how long a request that is not answered keeps others with its name out,
	// should its process be gone. It is longer than a change may take.
	ReplyClaimed = 10 * time.Second
)

// ErrReplied says that a change was not made, because its request has been answered.
var ErrReplied = errors.New("the request has been answered")

// ErrTooManyReplies says that no more names of requests can be kept for now.
var ErrTooManyReplies = errors.New("too many requests with an Idempotency-Key")
