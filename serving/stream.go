package serving

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
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

	Lost <-chan struct{} // closed when it is no longer the member's that polled it; nil: it stays so
}

// IsLost says that the record is no longer the member's that polled it.
func (r *StreamRecord) IsLost() bool {
	select {
	case <-r.Lost:
		return true
	default:
		return false
	}
}

// Partition is the part of its stream in whose order the record is; empty where the stream is one.
func (r *StreamRecord) Partition() string {
	partition, _, found := strings.Cut(r.Place, "/")
	if !found {
		return ""
	}
	return partition
}

// Header is the last value of a header; empty where there is none.
func (r *StreamRecord) Header(name string) (value string) {
	for _, h := range r.Headers {
		if h.Name == name {
			value = string(h.Value)
		}
	}
	return value
}

// Size is how many bytes the record has, with its key and headers.
func (r *StreamRecord) Size() int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// Position is where the record is, in all streams, as people write it.
func (r *StreamRecord) Position() string { return r.Stream + " " + r.Place }

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

// StreamResult is what became of a record: what is to be produced when it is marked as done.
type StreamResult struct {
	Record   *StreamRecord
	Messages []StreamMessage
}

// ErrRecordsLost says that records which were polled now belong to another member of the consumer
// group.
var ErrRecordsLost = errors.New("the records now belong to another member of the consumer group")

// Stream is a stream that some process serves, as that announced it. A Stream in a
// Catalog is immutable.
type Stream struct {
	Name       string      `json:"name"`
	Kind       StreamKind  `json:"kind"`
	App        string      `json:"app,omitempty"` // that predicts the records of a data stream; several, see SplitApps
	Input      []string    `json:"input"`
	Output     string      `json:"output"`
	DeadLetter string      `json:"dead_letter"`
	Suspension *Suspension `json:"suspension,omitempty"` // an operator's word; nil: none

	// Apps, an operator's word, too, are what records of a data stream may name, such as a type of
	// data, and the app that predicts for it, or several: over those of the configuration, which are not here.
	Apps map[string]string `json:"apps,omitempty"`
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

// MaxRecordApps bounds the apps that predict one record.
const MaxRecordApps = 16

// SplitApps are the apps of a text that names one or, between commas, several: each predicts a record, and
// has a result of its own. An empty text names none.
func SplitApps(text string) []string {
	if text == "" {
		return nil
	}
	apps := strings.Split(text, ",")
	for i := range apps {
		apps[i] = strings.TrimSpace(apps[i])
	}
	return apps
}

// CheckApps says why text cannot name the apps that predict a record, or nil.
func CheckApps(text string) error {
	if text == "" {
		return CheckAppName(text)
	}
	apps := SplitApps(text)
	if len(apps) > MaxRecordApps {
		return fmt.Errorf("there are %d apps for a record, and at most %d are possible", len(apps), MaxRecordApps)
	}
	var errs []error
	for i, app := range apps {
		errs = append(errs, CheckAppName(app))
		if slices.Contains(apps[:i], app) {
			errs = append(errs, fmt.Errorf("app %q is named twice", app))
		}
	}
	return errors.Join(errs...)
}

// maxStreamText bounds the names of topics and reasons, in bytes, and maxInputs those of a stream, and
// what its records may name.
const (
	maxStreamText = 1024
	maxInputs     = 1000
)

// Check returns everything that is wrong with the stream alone, or nil.
func (s *Stream) Check() error {
	errs := []error{CheckStreamName(s.Name)}
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %.80q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Kind != DataStream && s.Kind != ModelStream {
		wrong("kind %q is unknown: use %q or %q", s.Kind, DataStream, ModelStream)
	}
	if s.App != "" {
		errs = append(errs, CheckApps(s.App))
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
	if len(s.Apps) > maxInputs || len(s.Apps) > 0 && s.Kind != DataStream {
		wrong("apps are for data streams, at most %d", maxInputs)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Apps)) {
		if name == "" || len(name) > maxStreamText {
			wrong("what records name in apps has 1 to %d bytes", maxStreamText)
		}
		errs = append(errs, CheckApps(s.Apps[name]))
	}
	if p := s.Suspension; p != nil && (len(p.Reason) > maxStreamText || len(p.By) > maxStreamText) {
		wrong("the reason of a suspension may have at most %d bytes", maxStreamText)
	}
	return errors.Join(errs...)
}
