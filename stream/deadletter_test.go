package stream

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/serving"
)

func TestDeadLettersAreBounded(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	r := &serving.StreamRecord{
		Stream: "in", Place: "0/7", Key: []byte("key"), Value: []byte(strings.Repeat(long, 20)),
		Headers: []serving.StreamHeader{
			{Name: "trace", Value: []byte("t")}, {Name: HeaderReason, Value: []byte("an old one")}, {Name: "topsail-app", Value: []byte("wine")},
			{Name: "long", Value: []byte(long)}, {Name: "behind", Value: []byte("b")},
		},
	}
	w, why := deadLetters{job: "job", to: "dead", keep: []string{"topsail-app"}}, Rejected(NoID, "why")
	it := &Item{Record: r, Rejection: why}
	for try, want := range []struct {
		value   int
		key     string
		headers string
	}{
		{256 << 10, "key", "trace topsail-app topsail-reason topsail-kind topsail-stream topsail-place topsail-job topsail-truncated"},
		{1 << 10, "", "topsail-reason topsail-kind topsail-stream topsail-place topsail-job topsail-truncated"},
		{0, "", "topsail-reason topsail-kind topsail-stream topsail-place topsail-job topsail-truncated"},
	} {
		d := w.message(r, &it.Results()[0])
		var names []string
		for _, h := range d.Headers {
			names = append(names, h.Name)
		}
		if len(d.Value) != want.value || string(d.Key) != want.key || strings.Join(names, " ") != want.headers || d.Stream != "dead" {
			t.Errorf("try %d: %d bytes, key %q, headers %v", try, len(d.Value), d.Key, names)
		}
		if shorter := it.shorten(Kind{}, nil); shorter != (try < 2) {
			t.Errorf("try %d: it becomes shorter: %v", try, shorter)
		}
	}
	r.Headers = make([]serving.StreamHeader, 2000) // of nothing
	if n := len(w.message(r, &Result{Rejection: why, length: 2}).Headers); n > 10 {
		t.Errorf("%d headers", n)
	}
	if n := len(w.message(r, &Result{Rejection: why}).Headers); n > 1000 {
		t.Errorf("%d headers", n)
	}
	if reason := Rejected(NoID, "%s", strings.Repeat("é", 5000)).Text; len(reason) > mostReason+3 || !utf8.ValidString(reason) || !strings.HasPrefix(reason, "éé") {
		t.Errorf("a reason of %d bytes", len(reason))
	}
	r.Key = []byte(long)
	if d := w.message(r, &Result{Rejection: why}); d.Key != nil {
		t.Errorf("a key of %d bytes is kept", len(d.Key))
	}
}
