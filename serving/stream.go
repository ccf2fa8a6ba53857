package serving

import (
	"errors"
	"time"
)

// StreamRecord is a message of a stream as it came. Its memory is the receiver's.
type StreamRecord struct {
	Stream  string // the topic or the stream that it is from
	Place   string // where in it, for people and for dead letters: "3/1042" or "1718-0"
	Key     []byte
	Value   []byte
	Headers []StreamHeader
	At      time.Time // when it was produced
}

// StreamHeader is a named value beside a message.
type StreamHeader struct {
	Name  string
	Value []byte
}

// StreamMessage is a message to produce.
type StreamMessage struct {
	Stream  string
	Key     []byte // messages of one key stay in order
	Value   []byte
	Headers []StreamHeader
}

// ErrRecordsLost says that records which were polled belong to another member of the
// consumer group by now.
var ErrRecordsLost = errors.New("the records belong to another member of the consumer group by now")
