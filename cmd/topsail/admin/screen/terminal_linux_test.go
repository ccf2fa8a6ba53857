package screen

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen/testterm"
	"github.com/topsail-serving/topsail/test/require"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestTerminal(t *testing.T) {
	_, program := testterm.Open(t, 8, 4)
	for _, test := range []struct {
		vars   map[string]string
		colour bool
	}{{nil, true}, {map[string]string{"NO_COLOR": "1"}, false}, {map[string]string{"TERM": "dumb"}, false}} {
		s := New(program, program, program, env(test.vars))
		if !s.Terminal || !s.Live || !s.Asks || s.Colour != test.colour {
			t.Errorf("%v: %+v", test.vars, s)
		}
	}
	if columns, rows := New(program, program, program, env(nil)).size(); columns != 8 || rows != 4 {
		t.Errorf("%d × %d", columns, rows)
	}
	_, program = testterm.Open(t, 0, 0)
	if columns, rows := New(program, program, program, env(nil)).size(); columns != 80 || rows != 24 {
		t.Errorf("a terminal without a size has %d × %d", columns, rows)
	}
}

func TestAsk(t *testing.T) {
	for typed, want := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "yesterday\n": false} {
		person, program := testterm.Open(t, 8, 4)
		if _, err := person.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		if sure, err := New(program, program, program, env(nil)).Ask(t.Context(), "Sure?"); err != nil || sure != want {
			t.Errorf("%q: %v, %v", typed, sure, err)
		}
	}
	person, program := testterm.Open(t, 8, 4)
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if sure, err := New(program, program, program, env(nil)).Ask(ctx, "Sure?"); sure || err == nil {
		t.Errorf("%v, %v", sure, err)
	}
	_, _ = person.WriteString("\n") // ends the read
}

// TestFull holds that the picture fits the terminal, that q ends it, and that the
// terminal is as before afterwards.
func TestFull(t *testing.T) {
	person, program := testterm.Open(t, 8, 4)
	settings := func() unix.Termios {
		now, err := unix.IoctlGetTermios(int(program.Fd()), getTermios)
		require.NoError(t, err)
		return *now
	}
	before := settings()
	s := New(program, program, program, env(nil))
	ctx, leave := s.Full(t.Context())
	if settings() == before {
		t.Error("keys are not read one by one")
	}
	require.NoError(t, s.Draw([]string{"one", "two is too long", "three", "four"}))
	if _, err := person.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("q does not end it")
	}
	leave()
	if settings() != before {
		t.Error("the terminal is not as before")
	}
	seen := testterm.ReadUntil(t, person, "\x1b[?1049l")
	if want := "\x1b[Hone\x1b[K\r\ntwo is …\x1b[K\r\nthree\x1b[K\r\n\x1b[J"; !strings.Contains(seen, want) || strings.Contains(seen, "four") {
		t.Errorf("%q", seen)
	}
}

func TestProgressInALine(t *testing.T) {
	person, program := testterm.Open(t, 8, 4)
	p := New(program, program, program, env(nil)).Progress()
	p.Say("half of it all")
	p.Step("all")
	p.End()
	want := "\r\x1b[Khalf o…\r\x1b[Kall\r\n"
	if got := testterm.ReadUntil(t, person, "\n"); got != want {
		t.Errorf("%q", got)
	}
}
