package stored

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// entry changes an app with a default of so many bytes.
func entry(bytes int) serving.AuditEntry {
	object := func(fill string) json.RawMessage {
		return json.RawMessage(`{"name":"a","default_output":"` + strings.Repeat(fill, bytes) + `"}`)
	}
	return serving.AuditEntry{
		At: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), Who: "anna", From: "10.0.0.7", Action: "update", Kind: "app", Name: "a",
		Before: object("x"), After: object("y"), Revision: 12,
	}
}

func decode(t *testing.T, id string, text []byte) serving.AuditEntry {
	t.Helper()
	e, ok := NewFilter(serving.AuditQuery{}).Decode(id, text)
	if !ok {
		t.Fatalf("cannot read %s", text)
	}
	return e
}

func TestEntry(t *testing.T) {
	for _, want := range []serving.AuditEntry{entry(0), entry(30_000), {Who: "local"}} {
		given := want
		given.ID = "of another store"
		text, err := EncodeEntry(given)
		if err != nil || strings.Contains(string(text), given.ID) {
			t.Fatalf("got %s and error %v", text, err)
		}
		want.ID = "7"
		if got := decode(t, "7", text); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestLargeEntry keeps everything but the objects, and says how large they were.
func TestLargeEntry(t *testing.T) {
	large := entry(40_000)
	text, err := EncodeEntry(large)
	if err != nil || len(text) > MaxEntry {
		t.Fatalf("%d bytes, error %v", len(text), err)
	}
	want := large
	want.Before, want.After = json.RawMessage(`{"omitted_bytes":40032}`), json.RawMessage(`{"omitted_bytes":40032}`)
	if got := decode(t, "", text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	large.Before = nil // as of an object that is new
	large.After = json.RawMessage(`"` + strings.Repeat("x", MaxEntry) + `"`)
	text, err = EncodeEntry(large)
	if got := decode(t, "", text); err != nil || got.Before != nil || string(got.After) != `{"omitted_bytes":65538}` {
		t.Errorf("got %+v and error %v", got, err)
	}
	large.Name = strings.Repeat("x", MaxEntry)
	if text, err := EncodeEntry(large); err == nil || text != nil {
		t.Errorf("encoded a name of %d bytes", len(large.Name))
	}
	if text, err := EncodeEntry(serving.AuditEntry{After: json.RawMessage("{")}); err == nil || text != nil {
		t.Errorf("encoded %s, which is not valid JSON", text)
	}
}

func TestFilter(t *testing.T) {
	e := entry(0)
	e.Name, e.Before = `<"a\u00e9>`, json.RawMessage(`{"kind":"key","who":"file","name":"b"}`) // escaped, and misleading
	text, err := EncodeEntry(e)
	require.NoError(t, err)
	all := serving.AuditQuery{Kind: e.Kind, Name: e.Name, Who: e.Who, Before: "9", Limit: 1}
	for _, query := range []serving.AuditQuery{{}, {Kind: e.Kind}, {Name: e.Name}, {Who: e.Who}, all} {
		if got, ok := NewFilter(query).Decode("1", text); !ok || got.Name != e.Name || got.ID != "1" {
			t.Errorf("%+v: got %+v, %v", query, got, ok)
		}
	}
	for _, query := range []serving.AuditQuery{{Kind: "key"}, {Name: "b"}, {Name: "B"}, {Who: "ann"}, {Who: "file"}, {Kind: "app", Name: e.Name, Who: "file"}} {
		if got, ok := NewFilter(query).Decode("1", text); ok {
			t.Errorf("%+v: got %+v", query, got)
		}
	}
	for name, want := range map[string]bool{"model/update/m": true, "version/create/m:1": true, "version/update/m:1": false, "model/update/mm": false, "version/create/mm:1": false, "app/update/m": false} {
		one := entry(0)
		part := strings.Split(name, "/")
		one.Kind, one.Action, one.Name = part[0], part[1], part[2]
		text, err := EncodeEntry(one)
		require.NoError(t, err)
		if _, ok := NewFilter(serving.AuditQuery{Model: "m"}).Decode("1", text); ok != want {
			t.Errorf("%s is in the history of m: %v", name, ok)
		}
	}
	for _, text := range []string{"", "{", "null{}", `{"kind":1}`, `{"at":"noon"}`} {
		if got, ok := NewFilter(serving.AuditQuery{}).Decode("1", []byte(text)); ok {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// FuzzDecodeEntry gives any bytes: what is read is written and read again as the same, is
// not larger than may be, and is found by what it is.
func FuzzDecodeEntry(f *testing.F) {
	for _, e := range []serving.AuditEntry{entry(1), entry(40_000)} {
		text, err := EncodeEntry(e)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","before":null,"after":[1]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, ok := NewFilter(serving.AuditQuery{}).Decode("1", text)
		if !ok {
			return
		}
		stored, err := EncodeEntry(first)
		if err != nil {
			return // a time or a name that no store has written
		}
		if len(stored) > MaxEntry {
			t.Fatalf("encoded %d bytes", len(stored))
		}
		again, ok := NewFilter(serving.AuditQuery{Kind: first.Kind, Name: first.Name, Who: first.Who}).Decode("1", stored)
		if !ok || again.Name != first.Name || again.Action != first.Action || !again.At.Equal(first.At) ||
			(len(again.After) == 0) != (len(first.After) == 0) {
			t.Fatalf("got %+v, want %+v", again, first)
		}
	})
}
