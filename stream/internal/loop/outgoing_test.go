package loop

import (
	"errors"
	"strings"
	"testing"

	"topsail/serving"
)

// words is a batch whose records get messages of these values, and the empty ones none.
type words []string

func (w words) Message(record int) (m serving.StreamMessage, some bool) {
	return serving.StreamMessage{Value: []byte(w[record])}, w[record] != ""
}

func (w words) Shorten(record int, _ error) bool {
	if len(w[record]) == 1 {
		return false
	}
	w[record] = w[record][:1]
	return true
}

func (w words) Done() {}

// TestOutgoing finds the record of each message, also behind records that get none.
func TestOutgoing(t *testing.T) {
	batch := words{"", "one", "", "", "two", ""}
	produced := func() string {
		var all []string
		for _, m := range outgoingOf(batch, len(batch)).messages {
			all = append(all, string(m.Value))
		}
		return strings.Join(all, " ")
	}
	if got := produced(); got != "one two" {
		t.Fatalf("it produces %q", got)
	}
	large := errors.New("too large")
	o := outgoingOf(batch, len(batch))
	for message, want := range map[int]bool{-1: false, 1: true, 2: false} {
		if got := o.shorten(batch, message, large); got != want {
			t.Errorf("message %d is made shorter: %v", message, got)
		}
	}
	if got := produced(); got != "one t" {
		t.Errorf("it produces %q", got)
	}
	if o.shorten(batch, 1, large) {
		t.Error("what is short is made shorter")
	}
	if none := outgoingOf(words{"", ""}, 2); len(none.messages) > 0 {
		t.Errorf("nothing is produced as %v", none.messages)
	}
}
