package condition

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestTracker logs each problem once when it begins and once when it ends, however often it is tried.
func TestTracker(t *testing.T) {
	var said bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&said, nil)))
	if text, at := l.Last(); l.Err() != nil || text != "" || at != nil {
		t.Errorf("at first there is %v, and was %q at %v", l.Err(), text, at)
	}
	away := errors.New("away")
	for range 3 {
		l.Begin("poll", away)
	}
	l.Begin("commit", errors.New("full"))
	if err := l.Err(); !errors.Is(err, away) || fmt.Sprint(err) != "cannot commit: full\ncannot poll: away" {
		t.Errorf("there is %v", err)
	}
	if text, at := l.Last(); text != "cannot commit: full" || at == nil {
		t.Errorf("the last is %q at %v", text, at)
	}
	for range 3 {
		l.End("poll")
		l.End("commit")
	}
	l.Note("a dead letter")
	if text, _ := l.Last(); l.Err() != nil || text != "a dead letter" {
		t.Errorf("there is %v, and was %q", l.Err(), text)
	}
	if lines := strings.Count(said.String(), "\n"); lines != 4 {
		t.Errorf("it said\n%s", said.String())
	}
}
