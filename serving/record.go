package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Record remembers the answer to a query, so that feedback which comes later can be
// joined with what was asked and said, at whichever gateway it arrives.
type Record struct {
	QueryID   int64           `json:"query_id"`
	App       string          `json:"app"`
	User      string          `json:"user,omitempty"`
	Context   string          `json:"context,omitempty"`
	InputType InputType       `json:"input_type"`
	InputHash InputHash       `json:"input_hash"`
	Input     []byte          `json:"input,omitempty"` // the encoded input, unless it is large
	At        time.Time       `json:"at"`
	Expires   time.Time       `json:"expires"`
	Asked     []RecordedAsk   `json:"asked"`
	Output    json.RawMessage `json:"output,omitempty"` // the answer; nil when it was the default
	Learned   bool            `json:"learned,omitempty"`
	Inner     *RecordedInner  `json:"inner,omitempty"` // the query of the last stage, where that asks an app
}

// RecordedInner is a query to another app, which feedback is for as well.
type RecordedInner struct {
	App     string `json:"app"`
	QueryID int64  `json:"query_id"`
}

// RecordedAsk is one model that was asked, as what it was then, and what it said in time.
type RecordedAsk struct {
	ModelID
	Generation  string          `json:"generation,omitempty"`
	Probability float64         `json:"probability,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"` // nil: nothing came, or it was large
	Shadow      bool            `json:"shadow,omitempty"`
}

// Definition is what was asked.
func (a *RecordedAsk) Definition() Definition { return Definition{a.ModelID, a.Generation} }

const (
	// MaxRecordedInput and MaxRecordedOutput bound what a record keeps of an input and
	// of each output, in bytes.
	MaxRecordedInput  = 4096
	MaxRecordedOutput = 1024
	// MaxRecord bounds a record as a whole, in bytes, about.
	MaxRecord = 16 << 10
	// MaxRecords is how many records an app has at a time, at all gateways together.
	MaxRecords = 1 << 16
)

// RecordSlot is the place of the record of a query among the app's MaxRecords.
func RecordSlot(queryID int64) int { return int(uint64(queryID) % MaxRecords) }

// Bounded is the record within MaxRecord: itself, or a copy without its input, or else
// without what the models said either. It fails where that is not enough.
func (r *Record) Bounded() (*Record, error) {
	if r.size() <= MaxRecord {
		return r, nil
	}
	slim := *r
	slim.Input = nil
	if slim.size() <= MaxRecord {
		return &slim, nil
	}
	slim.Asked = slices.Clone(r.Asked)
	for i := range slim.Asked {
		slim.Asked[i].Output = nil
	}
	if size := slim.size(); size > MaxRecord {
		return nil, fmt.Errorf("the record of query %d has %d bytes without its outputs, more than %d: ask fewer models", r.QueryID, size, MaxRecord)
	}
	return &slim, nil
}

// size is about that of the record as it is stored.
func (r *Record) size() int {
	size := 300 + len(r.App) + len(r.User) + len(r.Context) + len(r.Input)*4/3 + len(r.Output)
	for i := range r.Asked {
		a := &r.Asked[i]
		size += 80 + len(a.Model) + len(a.Version) + len(a.Generation) + len(a.Output)
	}
	return size
}

// InputHash names an input: the same at every gateway.
type InputHash [16]byte

// HashInput is the hash of an input.
func HashInput(in Input) (h InputHash) {
	d := sha256.New()
	d.Write([]byte{byte(in.Type)})
	d.Write(in.Data)
	copy(h[:], d.Sum(nil))
	return h
}

// MarshalText implements encoding.TextMarshaler.
func (h InputHash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *InputHash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return errors.New("an input's hash has 32 hexadecimal digits")
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// ErrNoRecord says that there is no record: it has expired, made room for newer ones,
// or never was.
var ErrNoRecord = errors.New("no record of this answer")
