package redisstream

import (
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// TooLargeError says that a message is larger than what may be produced. Nothing was
// produced and nothing committed: polled records are still their member's, which may
// commit with a smaller message in its place.
type TooLargeError struct {
	Message int // its index among those to produce, or that of its result among those to commit
	Stream  string
	Why     string
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message %d, for the stream %s, is too large: %s", e.Message, e.Stream, e.Why)
}

// TooLarge is the index, for those who do not know Redis.
func (e *TooLargeError) TooLarge() (result int) { return e.Message }

const (
	defaultLimit = 16 << 20 // bytes of a message; Redis itself takes half a gigabyte
	mostHeaders  = 1000     // of a message; scripts of Redis cannot pass on much more
)

func checkSizes(messages []serving.StreamMessage, limit int) error {
	for i, m := range messages {
		bytes := len(m.Key) + len(m.Value)
		for _, h := range m.Headers {
			bytes += len(h.Name) + len(h.Value)
		}
		switch {
		case bytes > limit:
			return &TooLargeError{i, m.Stream, fmt.Sprintf("it has %d bytes, and %d are allowed", bytes, limit)}
		case len(m.Headers) > mostHeaders:
			return &TooLargeError{i, m.Stream, fmt.Sprintf("it has %d headers, and %d are allowed", len(m.Headers), mostHeaders)}
		}
	}
	return nil
}
