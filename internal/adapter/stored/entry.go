package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// MaxEntry bounds an audit entry as it is stored, in bytes.
const MaxEntry = 64 << 10

// omitted stands for an object that is too large to keep.
type omitted struct {
	Bytes int `json:"omitted_bytes"`
}

// EncodeEntry is the text of an audit entry, without its ID, of MaxEntry bytes at the
// most. Where the entry is larger, its objects before and after the change give way to
// {"omitted_bytes": their size}; one that is too large even then is an error.
func EncodeEntry(e serving.AuditEntry) ([]byte, error) {
	e.ID = ""
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode an audit entry: %w", err)
	}
	if len(text) <= MaxEntry {
		return text, nil
	}
	for _, object := range []*json.RawMessage{&e.Before, &e.After} {
		if len(*object) == 0 {
			continue
		}
		if *object, err = json.Marshal(omitted{len(*object)}); err != nil {
			return nil, fmt.Errorf("encode an audit entry: %w", err)
		}
	}
	if text, err = json.Marshal(e); err != nil {
		return nil, fmt.Errorf("encode an audit entry: %w", err)
	}
	if len(text) > MaxEntry {
		return nil, fmt.Errorf("an audit entry without its objects has %d bytes, and %d are the most", len(text), MaxEntry)
	}
	return text, nil
}

// Filter finds the entries that a query asks for, wherever they are in the log.
type Filter struct {
	query serving.AuditQuery
	marks [][]byte // what is in the text of such an entry
}

// NewFilter makes the Filter of a query.
func NewFilter(query serving.AuditQuery) Filter {
	f := Filter{query: query}
	for field, want := range map[string]string{"kind": query.Kind, "name": query.Name, "who": query.Who} {
		if want == "" {
			continue
		}
		if text, err := json.Marshal(map[string]string{field: want}); err == nil { // it always is
			f.marks = append(f.marks, text[1:len(text)-1])
		}
	}
	if query.Model != "" {
		f.marks = append(f.marks, []byte(`"name":"`+query.Model))
	}
	return f
}

// Decode reads what EncodeEntry wrote, and gives it its ID. It is not ok where the query
// asks for others, or where the text cannot be read: another release may have written it.
// To tell most others by their texts alone is thirty times as fast as to decode them.
func (f Filter) Decode(id string, text []byte) (e serving.AuditEntry, ok bool) {
	for _, mark := range f.marks {
		if !bytes.Contains(text, mark) {
			return serving.AuditEntry{}, false
		}
	}
	if json.Unmarshal(text, &e) != nil || !f.matches(e) {
		return serving.AuditEntry{}, false
	}
	e.ID = id
	return e, true
}

func (f Filter) matches(e serving.AuditEntry) bool {
	same := func(want, is string) bool { return want == "" || want == is }
	if m := f.query.Model; m != "" && !(e.Kind == "model" && e.Name == m || e.Kind == "version" && e.Action != "update" && strings.HasPrefix(e.Name, m+":")) {
		return false
	}
	return same(f.query.Kind, e.Kind) && same(f.query.Name, e.Name) && same(f.query.Who, e.Who)
}
