package serving

import (
	"errors"
	"fmt"
	"regexp"
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
	Unread  string    // why it has neither key nor value; empty: they are there
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

// Stream is a stream that some process serves, as that announced it. A Stream in a
// Catalog is immutable.
type Stream struct {
	Name       string      `json:"name"`
	Kind       StreamKind  `json:"kind"`
	App        string      `json:"app,omitempty"` // that predicts the records of a data stream
	Input      []string    `json:"input"`
	Output     string      `json:"output"`
	DeadLetter string      `json:"dead_letter"`
	Suspension *Suspension `json:"suspension,omitempty"` // an operator's word; nil: none
}

// StreamKind says what the records of a stream are.
type StreamKind string

// The kinds of streams.
const (
	DataStream  StreamKind = "data"  // inputs of an app
	ModelStream StreamKind = "model" // updates of models and apps
)

// Suspension is why a stream takes no records for the time being: they wait in the broker.
type Suspension struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// MaxStreams bounds the streams of a catalog.
const MaxStreams = 1000

var streamName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// CheckStreamName says why s cannot be the name of a stream, or nil.
func CheckStreamName(s string) error {
	if !streamName.MatchString(s) {
		return fmt.Errorf("stream name %.80q: use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit", s)
	}
	return nil
}

// maxStreamText bounds the names of topics and reasons, in bytes, and maxInputs those of a stream.
const (
	maxStreamText = 1024
	maxInputs     = 1000
)

// Check says everything that is wrong with the stream by itself, or nil.
func (s *Stream) Check() error {
	errs := []error{CheckStreamName(s.Name)}
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %.80q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Kind != DataStream && s.Kind != ModelStream {
		wrong("kind %q is unknown: use %q or %q", s.Kind, DataStream, ModelStream)
	}
	if s.App != "" {
		errs = append(errs, CheckAppName(s.App))
	}
	if len(s.Input) == 0 || len(s.Input) > maxInputs {
		wrong("it needs 1 to %d inputs", maxInputs)
	}
	for _, name := range append([]string{s.Output, s.DeadLetter}, s.Input...) {
		if name == "" || len(name) > maxStreamText {
			wrong("inputs, output and dead_letter need names of 1 to %d bytes", maxStreamText)
			break
		}
	}
	if p := s.Suspension; p != nil && (len(p.Reason) > maxStreamText || len(p.By) > maxStreamText) {
		wrong("the reason of a suspension may have %d bytes", maxStreamText)
	}
	return errors.Join(errs...)
}
